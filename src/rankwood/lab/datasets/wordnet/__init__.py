"""WordNet-LTR, a ranking data set of 32,000 queries that is made here, out of the WordNet database.

Files in reading order: `rules` (its numbers), `database` (reading), `text`, `arrays`, `index`, `vectors`, `search`
(queries and their candidates), `features`, `relations` (grades), `splits`, `writing`, `make`.
"""
