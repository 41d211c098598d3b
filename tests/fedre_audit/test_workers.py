"""Worker processes: sticky items, shared tensors, errors and deaths that reach the parent."""

import os
import signal

import pytest
import torch

from fedre_audit.workers import Workers, assign, interrupt_held, share_tensors
from knowledge_forms.errors import AuditError


def test_assignment_covers_every_item_once_and_balances():
    parts = assign([7, 1, 1, 5, 2, 4], 2)
    assert sorted(parts[0] + parts[1]) == list(range(6))
    loads = [sum([7, 1, 1, 5, 2, 4][i] for i in part) for part in parts]
    assert loads == [10, 10]
    assert [part[0] for part in parts] == [0, 3]  # longest first


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_every_item_is_answered_and_always_by_the_same_process(workers):
    with Workers(lambda item, request: (os.getpid(), item * request), [1.0] * 5, workers) as pool:
        first, second = dict(pool.map(10)), dict(pool.map(2, [1, 4]))
    assert {item: value for item, (_, value) in first.items()} == {0: 0, 1: 10, 2: 20, 3: 30, 4: 40}
    assert {item: value for item, (_, value) in second.items()} == {1: 2, 4: 8}
    assert {first[item][0] == second[item][0] for item in (1, 4)} == {True}
    assert len({pid for pid, _ in first.values()}) == workers


@pytest.mark.parametrize("channels_last", [False, True])
def test_shared_tensors_keep_values_and_strides_and_are_written_by_workers(channels_last):
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 5, 3), torch.nn.BatchNorm2d(5))
    if channels_last:
        model.to(memory_format=torch.channels_last)
    before = {name: (value.clone(), value.stride()) for name, value in model.state_dict().items()}
    share_tensors(model)
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name][0])
        assert value.stride() == before[name][1]

    def train(item, request):
        with torch.no_grad():
            model(torch.ones(2, 3, 4, 4))
            model[0].weight += 1

    with Workers(train, [1.0, 1.0], 2) as pool:
        dict(pool.map(None, [0]))
    torch.testing.assert_close(model[0].weight.detach(), before["0.weight"][0] + 1)
    assert int(model[1].num_batches_tracked) == 1


@pytest.mark.parametrize("workers", [1, 2])
def test_an_audit_error_reaches_the_parent(workers):
    def fail(item, request):
        if item == 1:
            raise AuditError("client 1: lower --lr")
        return item

    with Workers(fail, [1.0, 1.0], workers) as pool, pytest.raises(AuditError, match="client 1: lower --lr"):
        dict(pool.map(None))


def test_a_killed_worker_is_one_clear_error_and_leaves_no_process():
    def die(item, request):
        if item == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return os.getpid()

    with Workers(die, [1.0, 1.0], 2) as pool:
        with pytest.raises(AuditError, match=r"exit code -9.*--workers 1"):
            dict(pool.map(None))
        seen = dict(pool.map(None, [0]))
    with pytest.raises(ProcessLookupError):
        os.kill(seen[0], 0)


def test_workers_die_with_a_killed_parent():
    read, write = os.pipe()
    parent = os.fork()
    if parent == 0:  # stands for a run that is killed
        with Workers(lambda item, request: os.getpid(), [1.0, 1.0], 2) as pool:
            os.write(write, " ".join(str(pid) for _, pid in pool.map(None)).encode())
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(parent, 0)
    os.close(write)
    children = [int(pid) for pid in os.read(read, 100).split()]
    assert len(children) == 2
    assert os.read(read, 1) == b""  # returns once no process holds the other end: both are gone
    os.close(read)


def test_an_interrupt_waits_until_the_block_is_over_and_then_takes_effect():
    reached = []

    def interrupted_inside():
        with interrupt_held():
            signal.raise_signal(signal.SIGINT)
            reached.append("the end")

    with pytest.raises(KeyboardInterrupt):
        interrupted_inside()
    assert reached == ["the end"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
