"""cyllama generates a text. `cyllama_text.py MODEL LAYERS`, where LAYERS are on the GPU."""

import sys

from cyllama import LLM

model = LLM(sys.argv[1], n_gpu_layers=int(sys.argv[2]), max_tokens=6, temperature=0.0)
print(repr(str(model("hello"))))
