from methods.contract import MethodContract

import tri_apsp


class TestMethodsOnCpu(MethodContract):
    engine, device = "cpu", "cpu"
    config = tri_apsp.Config(block_size=32, cutoff=50)
    predecessor_cases = ("disconnected", "zero weights", "negative")
