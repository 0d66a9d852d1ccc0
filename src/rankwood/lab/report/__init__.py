"""The report of models on data: numbers, one page of HTML that needs nothing else, and figures for papers."""
