"""Runs what kiln_emit_kernels wrote on PyTorch's tensors and stream, through the CUDA driver."""

import ctypes
import json

import torch

DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32, "f64": torch.float64}


def check(status):
    if status != 0:
        raise RuntimeError(f"the CUDA driver returned {status}")


class Candidate:
    """A region under one schedule."""

    def __init__(self, driver, folder, description):
        self.driver = driver
        self.schedule = description["schedule"]
        self.launches = []
        self.workspace = None
        if description["workspace_bytes"]:
            self.workspace = torch.empty(description["workspace_bytes"], dtype=torch.uint8,
                                         device="cuda")
        module = ctypes.c_void_p()
        image = (folder / description["cubin"]).read_bytes()
        check(driver.cuModuleLoadData(ctypes.byref(module), image))
        for launch in description["launches"]:
            function = ctypes.c_void_p()
            check(driver.cuModuleGetFunction(ctypes.byref(function), module,
                                             launch["entry"].encode()))
            self.launches.append((function, launch["blocks"], launch["threads"]))

    def run(self, tensors):
        """Puts it into PyTorch's current stream; `tensors` are inputs, then outputs."""
        if self.workspace is not None:
            tensors = [*tensors, self.workspace]
        addresses = [ctypes.c_void_p(tensor.data_ptr()) for tensor in tensors]
        parameters = (ctypes.c_void_p * len(addresses))(
            *(ctypes.cast(ctypes.pointer(address), ctypes.c_void_p) for address in addresses))
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        for function, blocks, threads in self.launches:
            check(self.driver.cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, stream,
                                             parameters, None))


class Model:
    """The kernels of a model: regions run in order, values by name."""

    def __init__(self, folder):
        self.description = json.loads((folder / "kernels.json").read_text())
        driver = ctypes.CDLL("libcuda.so.1")
        torch.cuda.synchronize()  # its context is the current one
        self.regions = [
            (region, [Candidate(driver, folder, c) for c in region["candidates"]])
            for region in self.description["regions"]]
        self.constants = {
            name: self.read_constant(folder / value["file"], value)
            for name, value in self.description["values"].items() if "file" in value}

    @staticmethod
    def read_constant(file, value):
        data = torch.frombuffer(bytearray(file.read_bytes()), dtype=DTYPES[value["dtype"]])
        return data.reshape(value["shape"]).cuda()

    def bind(self, inputs):
        """Memory for every value, `inputs` being those of the model in order."""
        values = dict(self.constants)
        for (_, name), tensor in zip(self.description["inputs"], inputs):
            values[name] = tensor
        for name, value in self.description["values"].items():
            if name not in values:
                values[name] = torch.empty(value["shape"], dtype=DTYPES[value["dtype"]],
                                           device="cuda")
        for region, _ in self.regions:
            if region["alias"]:
                source = values[region["inputs"][0]]
                shape = self.description["values"][region["outputs"][0]]["shape"]
                values[region["outputs"][0]] = source.reshape(shape)
        return values

    def outputs(self, values):
        return [values[name] for _, name in self.description["outputs"]]

    @staticmethod
    def run_region(region, candidate, values):
        candidate.run([values[name] for name in (*region["inputs"], *region["outputs"])])
