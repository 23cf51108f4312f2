"""What FlyDSL's compiler and runtime use of torch, so that its kernels run without it: tensors in device memory, which
it reads as DLPack, and streams."""

import ctypes
import math

__version__ = "2.12.0"

# DLPack: kinds of numbers, and ROCm as a kind of device.
SIGNED, UNSIGNED, FLOAT, BFLOAT = 0, 1, 2, 4
ROCM = 10
HOST_TO_DEVICE, DEVICE_TO_HOST = 1, 2


class dtype:
    def __init__(self, name, code, bits):
        self.name, self.code, self.bits = name, code, bits

    def __repr__(self):
        return f"torch.{self.name}"


float32, float16, bfloat16 = dtype("float32", FLOAT, 32), dtype("float16", FLOAT, 16), dtype("bfloat16", BFLOAT, 16)
int8, int32, int64 = dtype("int8", SIGNED, 8), dtype("int32", SIGNED, 32), dtype("int64", SIGNED, 64)
uint8 = dtype("uint8", UNSIGNED, 8)


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class DLManagedTensor(ctypes.Structure):
    _fields_ = [("tensor", DLTensor), ("context", ctypes.c_void_p), ("deleter", DELETER)]


# What capsules point to has to outlive them, and nothing is freed before the process ends.
_exported = []
_nothing = DELETER(lambda pointer: None)
_capsule = ctypes.pythonapi.PyCapsule_New
_capsule.restype, _capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


def _hip(name, *arguments):
    code = getattr(ctypes.CDLL("libamdhip64.so"), name)(*arguments)
    if code != 0:
        raise RuntimeError(f"{name}: hipError {code}")


class Tensor:
    requires_grad = False
    is_cuda = True

    def __init__(self, shape, dtype):
        self.shape, self.dtype = tuple(shape), dtype
        self._strides = tuple(math.prod(self.shape[n + 1 :]) for n in range(len(self.shape)))
        self.nbytes = math.prod(self.shape) * dtype.bits // 8
        pointer = ctypes.c_void_p()
        _hip("hipMalloc", ctypes.byref(pointer), ctypes.c_size_t(self.nbytes))
        self._pointer = pointer.value

    def data_ptr(self):
        return self._pointer

    def stride(self, dim=None):
        return self._strides if dim is None else self._strides[dim]

    def detach(self):
        return self

    def write(self, contents):
        assert len(contents) == self.nbytes
        size = ctypes.c_size_t(self.nbytes)
        _hip("hipMemcpy", ctypes.c_void_p(self._pointer), contents, size, HOST_TO_DEVICE)
        return self

    def read(self):
        contents = ctypes.create_string_buffer(self.nbytes)
        size = ctypes.c_size_t(self.nbytes)
        _hip("hipMemcpy", contents, ctypes.c_void_p(self._pointer), size, DEVICE_TO_HOST)
        return contents.raw

    def __dlpack_device__(self):
        return (ROCM, 0)

    def __dlpack__(self, stream=None, **_):
        numbers = ctypes.c_int64 * len(self.shape)
        shape, strides = numbers(*self.shape), numbers(*self._strides)
        code, bits = self.dtype.code, self.dtype.bits
        tensor = DLTensor(self._pointer, ROCM, 0, len(self.shape), code, bits, 1, shape, strides, 0)
        managed = DLManagedTensor(tensor, None, _nothing)
        _exported.append((managed, shape, strides, self))
        return _capsule(ctypes.addressof(managed), b"dltensor", None)


class cuda:
    class Stream:
        cuda_stream = 0

    @staticmethod
    def is_available():
        return True

    @staticmethod
    def current_stream(*_):
        return cuda.Stream()

    @staticmethod
    def synchronize():
        _hip("hipDeviceSynchronize")
