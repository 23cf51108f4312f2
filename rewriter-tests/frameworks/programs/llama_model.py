"""Writes a small language model with random weights, in GGUF: two layers of llama's kind. `llama_model.py FILE`."""

import sys

import gguf
import numpy as np

WIDTH, HEADS, KEY_HEADS, LAYERS, INNER, CONTEXT = 256, 4, 2, 2, 512, 256
random = np.random.default_rng(7)


def vocabulary():
    """Three special tokens, one for each byte, a blank, letters, and unused ones to a multiple of 32."""
    kind = gguf.TokenType
    tokens = [("<unk>", kind.UNKNOWN), ("<s>", kind.CONTROL), ("</s>", kind.CONTROL)]
    tokens += [(f"<0x{byte:02X}>", kind.BYTE) for byte in range(256)]
    tokens += [(letter, kind.NORMAL) for letter in "\u2581abcdefghijklmnopqrstuvwxyz.,"]
    while len(tokens) % 32 != 0:
        tokens.append((f"<unused {len(tokens)}>", kind.NORMAL))
    return tokens


def main(path):
    writer = gguf.GGUFWriter(path, "llama")
    tokens = vocabulary()
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KEY_HEADS)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("llama")
    writer.add_token_list([text.encode() for text, _ in tokens])
    writer.add_token_scores([0.0 if kind != gguf.TokenType.NORMAL else -1.0 for _, kind in tokens])
    writer.add_token_types([int(kind) for _, kind in tokens])
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)

    def matrix(name, rows, columns, scale=None):
        scale = 1 / np.sqrt(columns) if scale is None else scale
        writer.add_tensor(name + ".weight", (random.standard_normal((rows, columns)) * scale).astype(np.float32))

    def norm(name):
        writer.add_tensor(name + ".weight", (1 + 0.1 * random.standard_normal(WIDTH)).astype(np.float32))

    matrix("token_embd", len(tokens), WIDTH, 1.0)
    # Large enough that the best token leads the others clearly: the order of a sum must not change which it is.
    matrix("output", len(tokens), WIDTH, 3 / np.sqrt(WIDTH))
    norm("output_norm")
    for layer in range(LAYERS):
        block = f"blk.{layer}."
        keys = WIDTH * KEY_HEADS // HEADS
        norm(block + "attn_norm")
        norm(block + "ffn_norm")
        for name, rows, columns in [
            ("attn_q", WIDTH, WIDTH),
            ("attn_k", keys, WIDTH),
            ("attn_v", keys, WIDTH),
            ("attn_output", WIDTH, WIDTH),
            ("ffn_gate", INNER, WIDTH),
            ("ffn_up", INNER, WIDTH),
            ("ffn_down", WIDTH, INNER),
        ]:
            matrix(block + name, rows, columns)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


main(*sys.argv[1:])
