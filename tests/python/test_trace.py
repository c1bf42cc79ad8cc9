"""stowage.Trace: reading, writing, what it says of the step."""

import copy
import gzip
import json
import pickle
import threading

import pytest
import stowage

# gpt2:layers=6,width=256,seq=256,vocab=1024, batch 4: traces/samples/README.md.
PEAK = 160_966_664


def test_says_what_was_recorded(gpt2):
    assert gpt2.model.startswith("gpt2:")
    assert (gpt2.batch, gpt2.seq, gpt2.dtype, gpt2.optimizer) == (4, 256, "fp32", "none")
    assert gpt2.device == "cpu"
    assert gpt2.peaks == {"requested_bytes": PEAK, "active_bytes": PEAK, "reserved_bytes": None}
    assert gpt2.step_ns > 0
    assert gpt2.fingerprint.startswith("sha256:")
    names = gpt2.layers.column("name")
    assert len(set(names)) == len(names)
    assert "layers.5.mlp" in names
    assert names.index("layers.0.mlp") < names.index("layers.1.mlp")


def test_a_gpu_has_reserved_bytes(on_gpu):
    assert on_gpu.device == "cuda"
    assert on_gpu.peaks["reserved_bytes"] >= on_gpu.peaks["active_bytes"] >= on_gpu.peaks["requested_bytes"]


def test_saved_tensors_are_a_table(gpt2):
    rows = gpt2.saved_tensors()
    content = json.loads(gpt2.to_json())
    assert len(rows) == len(content["saved"]["site"])
    by_site = {row["site"]: row for row in rows}
    assert len(by_site) == len(rows)
    # batch 4, seq 256, the MLP's inner width 4 * 256, 4 bytes each.
    gelu = next(row for row in rows if row["layer"] == "layers.3.mlp" and row["shape"] == (4, 256, 1024))
    assert gelu["bytes"] == 4 * 256 * 1024 * 4
    assert gelu["dtype"] == "float32"
    assert gelu["made_in_step"]
    assert any(row["storage_class"] == "parameter" and not row["made_in_step"] for row in rows)
    assert stowage.SavedTensor(**gelu).site == gelu["site"]


def test_json_is_the_same_both_ways(gpt2):
    text = gpt2.to_json()
    again = stowage.Trace.from_json(text)
    assert again.to_json() == text
    assert again == gpt2
    assert hash(again) == hash(gpt2)
    assert again != stowage.Trace.from_json(text).with_settings({"link.duplex": 0.5})


def test_saves_plain_and_compressed(gpt2, tmp_path):
    for name in ("t.json", "t.json.gz"):
        gpt2_again = stowage.Trace.from_json(gpt2.to_json())
        gpt2_again.save(tmp_path / name)
        assert gpt2_again.path == str(tmp_path / name)
        assert stowage.Trace.load(tmp_path / name) == gpt2
    assert gzip.decompress((tmp_path / "t.json.gz").read_bytes()) == (tmp_path / "t.json").read_bytes()


def test_pickles_and_copies(sample):
    trace = sample("mlp-l6-fp32-cpu")
    assert pickle.loads(pickle.dumps(trace)) == trace
    assert copy.deepcopy(trace) == trace


def test_errors_are_pythons(tmp_path):
    with pytest.raises(FileNotFoundError):
        stowage.Trace.load(tmp_path / "none.json.gz")
    (tmp_path / "bad.json").write_text('{"schema": 3}')
    with pytest.raises(stowage.BadInput) as bad:
        stowage.Trace.load(tmp_path / "bad.json")
    assert isinstance(bad.value, ValueError)
    assert isinstance(bad.value, stowage.Error)
    assert bad.value.file == str(tmp_path / "bad.json")
    assert bad.value.pointer
    assert str(bad.value).startswith(bad.value.file)
    with pytest.raises(stowage.BadInput, match="^nonsense: "):
        stowage.Trace.from_json(b"\xff\xfe", "nonsense")


def test_a_folder_that_is_not_there_is_said(gpt2, tmp_path):
    with pytest.raises(stowage.Unavailable, match="none"):
        gpt2.save(tmp_path / "none" / "t.json")


def test_settings_are_of_another_machine(on_gpu):
    slow = on_gpu.with_settings({"link.h2d_gbps": 1, "link.d2h_gbps": 1})
    assert slow.peaks == on_gpu.peaks
    assert slow != on_gpu
    with pytest.raises(stowage.UsageError, match="link.h2d_gbps"):
        on_gpu.with_settings({"link.h2d_gpbs": 1})


def test_a_trace_without_events_is_refused():
    with pytest.raises(stowage.BadInput):
        stowage.simulate(stowage.Trace.from_json(b"{}"))


def test_threads_share_a_trace(sample):
    text = sample("gpt2-l6-fp32-cpu").to_json()
    fresh = stowage.Trace.from_json(text)  # whose index nobody made yet
    peaks = []
    start = threading.Barrier(4)

    def replay():
        start.wait()
        peaks.append(stowage.simulate(fresh, "save_on_cpu").peak_active_bytes)

    threads = [threading.Thread(target=replay) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(peaks) == 4
    assert len(set(peaks)) == 1


def test_shows_itself(gpt2):
    assert "gpt2" in repr(gpt2)
    assert "<svg" in gpt2._repr_html_()
