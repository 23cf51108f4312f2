/* Debian's package of MIGraphX's headers lacks this one, which its own build makes. */
#define MIGRAPHX_C_EXPORT
