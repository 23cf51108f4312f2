"""Runs queries in an engine: {"setup": the guide's code, "queries": [SQL]} from stdin, rows as JSON to stdout."""
import json
import sys


def rows(answer):
    """The rows of an engine's table, by names of columns."""
    if hasattr(answer, "fetchall"):
        return [dict(zip(answer.columns, row)) for row in answer.fetchall()]
    if hasattr(answer, "collect"):
        return [row.asDict() for row in answer.collect()]
    return answer.rows(named=True)


asked = json.load(sys.stdin)
names = {}
exec(asked["setup"], names)
json.dump([rows(names["sql"](query)) for query in asked["queries"]], sys.stdout, default=float)
