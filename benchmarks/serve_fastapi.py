"""What `benchmarks/serve.py` compares with: a LightGBM model behind FastAPI, as users write it.

uvicorn imports it; RANKWOOD_BENCHMARK_MODEL names the model file.
"""

from __future__ import annotations

import os

import lightgbm
import numpy as np
import pyarrow as pa
from fastapi import FastAPI, Request, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel

app = FastAPI()
booster = lightgbm.Booster(model_file=os.environ["RANKWOOD_BENCHMARK_MODEL"])


class Batch(BaseModel):
    rows: list[list[float | None]]


@app.post("/score")
def score(batch: Batch) -> dict[str, list[float]]:
    X = np.array(batch.rows, dtype=np.float64)
    return {"scores": booster.predict(X, num_threads=1).tolist()}


@app.post("/score-arrow")
async def score_arrow(request: Request) -> Response:
    return Response(await run_in_threadpool(_score, await request.body()), media_type=request.headers["content-type"])


def _score(body: bytes) -> bytes:
    column = pa.ipc.open_stream(body).read_all().column(0).combine_chunks()
    X = column.flatten().to_numpy().reshape(len(column), -1)
    table = pa.table({"score": booster.predict(X, num_threads=1)})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()
