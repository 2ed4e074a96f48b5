"""Plants one fault of every kind in a scratch tree and demands that check_sources reports it."""
import pathlib
import subprocess
import sys
import tempfile

CHECKER = pathlib.Path(__file__).with_name("check_sources.py")

CLEAN = {
    "formats/result.h": "#include <string>\n",
    "formats/engine_file/plan.h": '#include "formats/result.h"\n',
    "engine/engine.h": '#include "formats/result.h"\n#include <vector>\n',
    "engine/engine.cc": '#include "engine/engine.h"\n#include "formats/engine_file/plan.h"\n',
    "engine/host_kernels.h": "#include <span>\n",
    "engine/host/matmul.cc": '#include "engine/host_kernels.h"\n#include <dnnl.hpp>\n',
    "builder/builder.cc": '#include "engine/engine.h"\n#include <spdlog/spdlog.h>\n',
    "plugins/plugin_abi.h": "#include <stdint.h>\n",
    "plugins/scale/scale.cc": '#include "plugins/plugin_abi.h"\n',
}
FAULTS = {  # path: (text, a part of the message)
    "formats/a.cc": ('#include "engine/engine.h"\n', "formats/ may not include engine/engine.h"),
    "engine/a.cc": ('#include "builder/builder.h"\n', "engine/ may not include builder/builder.h"),
    "engine/b.cc": ('#include "engine/host/k.h"\n', "engine/ may not include engine/host/k.h"),
    "engine/c.cc": ("#include <dnnl.hpp>\n", "<dnnl.hpp> may be included only below engine/host/"),
    "engine/d.h": ('#include "formats/engine_file/plan.h"\n', "may not include the private"),
    "engine/e.h": ("#include <nlohmann/json.hpp>\n", "only the standard library"),
    "engine/f.cc": ("#include <spdlog/spdlog.h>\n", "<spdlog/spdlog.h> may be included only"),
    "engine/host/g.cc": ('#include "engine/steps/s.h"\n', "engine/host/ may not include"),
    "builder/h.cc": ('#include "engine/steps/s.h"\n', "builder/ may not include engine/steps/s.h"),
    "builder/i.cc": ("#include <onnx/onnx_pb.h>\n", "may be included only below formats/onnx/"),
    "calibration/j.cc": ('#include "builder/builder.h"\n', "calibration/ may not include"),
    "plugins/k/k.cc": ('#include "formats/result.h"\n', "plugins/ may not include"),
    "builder/l.cc": ('#include "graph.h"\n', "is not rooted at the repository"),
    "builder/helpers.cc": ("\n", "the name 'helpers' tells nothing"),
    "builder/m.cc": ("\n" * 401, "401 lines; at most 400"),
}


def check(files):
    with tempfile.TemporaryDirectory() as root:
        for path, text in files.items():
            file = pathlib.Path(root, path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        run = subprocess.run([sys.executable, CHECKER, root], capture_output=True, text=True)
        return run.returncode, run.stdout


def main():
    code, output = check(CLEAN)
    failures = [f"clean tree refused:\n{output}"] if code else []
    for path, (text, message) in FAULTS.items():
        code, output = check({**CLEAN, path: text})
        if code != 1 or message not in output or output.count("\n") != 2:
            failures.append(f"{path}: expected exactly '{message}', got:\n{output}")
    print("\n".join(failures) or f"{len(FAULTS)} kinds of fault found")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
