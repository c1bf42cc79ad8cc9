"""Where gradients and AdamW's state of the whole llama3-8b go: the peers of whole_llama.py.

Each is a function of (module that gives the loss, options) that returns (a step of a batch, which returns the loss and
has updated the parameters at its end; what its AdamW is). It raises NotAvailable where the machine lacks what it needs.
AdamW has PyTorch's defaults (rate 0.001), as Stowage's has. Bytes on the host are those it needs for each parameter;
PyTorch rounds pinned buffers up to powers of two.
"""

import os
import queue
import socket
import threading

import torch

from plans import NotAvailable

ADAMW = {"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.01}


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return str(found.getsockname()[1])


def deepspeed_with(masters):
    def peer(model, options):
        """ZeRO-Offload: stage 2 with the optimizer on the CPU. Its C++ AdamW is compiled when first used."""
        os.environ.update({"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1"})
        os.environ.setdefault("MASTER_PORT", free_port())
        os.environ.setdefault("NCCL_SOCKET_IFNAME", "lo")
        os.environ.setdefault("DS_ACCELERATOR", options.device)
        try:
            import deepspeed
        except ImportError as error:
            raise NotAvailable(f"deepspeed cannot be imported: {error}") from error
        bf16 = {"enabled": True}
        if masters == "bf16":
            bf16["bf16_master_weights_and_grads"] = True
        config = {
            "train_micro_batch_size_per_gpu": options.batch,
            "bf16": bf16,
            "zero_optimization": {
                "stage": 2,
                "overlap_comm": True,
                "offload_optimizer": {"device": "cpu", "pin_memory": options.pin == "yes"},
            },
            "optimizer": {"type": "AdamW", "params": {**ADAMW, "betas": list(ADAMW["betas"])}},
        }
        try:
            engine = deepspeed.initialize(model=model, config=config)[0]
        except RuntimeError as error:
            if "cpu_adam" in str(error):
                raise NotAvailable(f"{error}: {error.__cause__}"[:1000]) from error
            raise

        def step(tokens, targets):
            loss = engine(tokens, targets)
            engine.backward(loss)
            engine.step()
            return loss.item()

        # Masters, gradients and a copy of the parameters, then two moments in float32.
        host = {"fp32": 4 + 4 + 2 + 8, "bf16": 2 + 2 + 2 + 8}[masters]
        return step, {"adamw": f"{masters} masters, fp32 moments, on the CPU", "host_bytes_per_parameter": host}

    return peer


def torchao(model, options):
    """torchao's CPUOffloadOptimizer: gradients leave as they come, AdamW behind backward. It knows no masters."""
    if options.device != "cuda":
        raise NotAvailable("torchao offloads from a GPU only")
    try:
        from torchao.optim import CPUOffloadOptimizer
    except ImportError as error:
        raise NotAvailable(f"torchao cannot be imported: {error}") from error
    optimizer = CPUOffloadOptimizer(model.parameters(), torch.optim.AdamW, offload_gradients=True, fused=True, **ADAMW)

    def step(tokens, targets):
        loss = model(tokens, targets)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.item()

    return step, {"adamw": "no masters, bf16 moments, on the CPU", "host_bytes_per_parameter": 2 + 2 + 4}


class UpdatesInBackward:
    """By hand: a hook takes each gradient to the host, where a thread updates its fp32 master and sends the parameter.

    PyTorch's tutorial of an optimizer step in backward, with PyTorch's fused AdamW on the CPU.
    """

    def __init__(self, parameters, there):
        self.there, self.failure = there, None
        self.todo = queue.Queue()
        self.state = {}
        self.gradient = torch.empty(max(parameter.numel() for parameter in parameters))  # fp32, of one at a time
        for parameter in parameters:
            master = parameter.detach().to("cpu", torch.float32, copy=True)
            staged = torch.empty_like(parameter, device="cpu", pin_memory=there)
            self.state[parameter] = master, torch.optim.AdamW([master], fused=True, **ADAMW), staged
            parameter.register_post_accumulate_grad_hook(self.arrived)
        if there:
            self.down, self.up = torch.cuda.Stream(), torch.cuda.Stream()
            threading.Thread(target=self.work, daemon=True).start()

    def arrived(self, parameter):
        gradient, parameter.grad = parameter.grad, None
        staged = self.state[parameter][2]
        if not self.there:
            staged.copy_(gradient)
            self.update(parameter)
            return
        self.down.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.down):
            staged.copy_(gradient, non_blocking=True)
            gradient.record_stream(self.down)
            self.todo.put((parameter, self.down.record_event()))

    @torch.no_grad()
    def update(self, parameter):
        master, optimizer, staged = self.state[parameter]
        master.grad = self.gradient[: master.numel()].view_as(master).copy_(staged)
        optimizer.step()
        master.grad = None
        staged.copy_(master)
        parameter.copy_(staged, non_blocking=True)

    def work(self):
        while True:
            parameter, event = self.todo.get()
            try:
                event.synchronize()
                with torch.cuda.stream(self.up):
                    self.update(parameter)
            except Exception as error:  # noqa: BLE001: raised where it is waited for
                self.failure = error
            self.todo.task_done()

    def finish(self):
        self.todo.join()
        if self.failure:
            raise self.failure
        if self.there:
            torch.cuda.current_stream().wait_stream(self.up)


def hooks(model, options):
    updates = UpdatesInBackward(list(model.parameters()), options.device == "cuda")

    def step(tokens, targets):
        loss = model(tokens, targets)
        loss.backward()
        updates.finish()
        return loss.item()

    about = {"adamw": "fp32 masters, fp32 moments, on the CPU, in backward", "host_bytes_per_parameter": 4 + 8 + 2}
    return step, about


OFFLOADS = {
    "deepspeed": deepspeed_with("bf16"),
    "deepspeed-fp32": deepspeed_with("fp32"),
    "torchao": torchao,
    "hooks": hooks,
}
