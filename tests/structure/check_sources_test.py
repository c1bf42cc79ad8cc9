"""check_sources.py must find each kind of offence, and nothing in files that keep the rules."""

import unittest

from check_sources import MAX_FUNCTION_LINES, MAX_LINES, MAX_TORCH_H, check_tree, functions


def rules(path, text):
    return [rule for _, _, rule, _ in check_tree({path: text})]


class CheckSources(unittest.TestCase):
    def expect(self, path, text, *expected):
        self.assertEqual(rules(path, text), list(expected), (path, text))

    def test_arrows(self):
        self.expect("traces/a.cpp", '#include "simulator/step/b.h"\n', "arrow")
        self.expect("simulator/step/a.cpp", '#include "traces/b.h"\n')
        self.expect("simulator/step/a.cpp", '#include "planner/b.h"\n', "arrow")
        self.expect("planner/policies/a.cpp", '#include "planner/b.h"\n#include "simulator/step/c.h"\n')
        self.expect("planner/a.cpp", '#include "cli/b.h"\n', "arrow")
        self.expect("planner/a.cpp", '#include "report/b.h"\n', "arrow")
        self.expect("report/a.cpp", '#include "planner/b.h"\n#include "simulator/step/c.h"\n')
        self.expect("report/a.cpp", '#include "cli/b.h"\n', "arrow")
        self.expect("executor/a.cpp", '#include "executor/device/b.h"\n')
        self.expect("executor/device/a.cpp", '#include "executor/b.h"\n', "arrow")
        self.expect("executor/a.cpp", '#include "executor/distributed/b.h"\n', "arrow")
        self.expect("executor/distributed/a.cpp", '#include "executor/b.h"\n')
        self.expect("executor/models/a.cpp", '#include "planner/b.h"\n', "arrow")
        self.expect("executor/a.cpp", '#include "profiler/torch/b.h"\n', "arrow")
        self.expect("profiler/assembly/a.cpp", '#include "executor/b.h"\n', "arrow")
        self.expect("profiler/torch/a.cpp", '#include "executor/b.h"\n')
        self.expect("cli/a.cpp", '#include "cli/torch/b.h"\n', "arrow")
        self.expect("cli/torch/a.cpp", '#include "cli/b.h"\n')
        self.expect("traces/a.cpp", '#include "tests/support/b.h"\n', "arrow")
        self.expect("tests/traces/a.cpp", '#include "tests/support/b.h"\n')
        self.expect("examples/a.cpp", '#include "cli/b.h"\n', "arrow")
        self.expect("include/stowage/a.h", '#pragma once\n#include "executor/b.h"\n')
        self.expect("include/stowage/a.h", '#pragma once\n#include "cli/b.h"\n', "arrow")
        self.expect("gui/app/a.cpp", '#include "gui/widgets/b.h"\n#include "gui/model/c.h"\n')
        self.expect("gui/widgets/a.cpp", '#include "gui/model/b.h"\n#include "planner/c.h"\n')
        self.expect("gui/widgets/a.cpp", '#include "gui/app/b.h"\n', "arrow")
        self.expect("gui/model/a.cpp", '#include "gui/widgets/b.h"\n', "arrow")
        self.expect("gui/model/a.cpp", '#include "cli/b.h"\n', "arrow")
        self.expect("planner/a.cpp", '#include "gui/model/b.h"\n', "arrow")

    def test_users_include_the_public_api_alone(self):
        for user in ("examples/a.cpp", "examples/plugin/a.cpp", "tests/package/memory/a.cpp"):
            self.expect(user, "#include <stowage/layer.h>\n#include <ATen/ATen.h>\n")
            self.expect(user, '#include "executor/layer.h"\n', "arrow")
            self.expect(user, '#include "traces/result.h"\n', "arrow")
        for ours in ("executor/a.cpp", "traces/a.cpp", "cli/torch/a.cpp", "tests/executor/a.cpp"):
            self.expect(ours, "#include <stowage/layer.h>\n", "public")
        own = {"tests/package/a/traces/trace.h": "#pragma once\n",
               "tests/package/a/main.cpp": '#include "traces/trace.h"\n'}
        self.assertEqual(list(check_tree(own)), [])
        own["traces/trace.h"] = own["include/stowage/trace.h"] = "#pragma once\nstruct Trace {};\n"
        self.assertEqual(list(check_tree(own)), [])

    def test_rooms(self):
        self.expect("simulator/schedule/a.cpp", '#include "simulator/step/b.h"\n')
        self.expect("simulator/step/a.cpp", '#include "simulator/schedule/b.h"\n', "arrow")
        self.expect("simulator/lowering/a.cpp", '#include "simulator/schedule/b.h"\n')
        self.expect("simulator/hazards/a.cpp", '#include "simulator/lowering/b.h"\n', "arrow")
        self.expect("simulator/hazards/a.cpp", '#include "simulator/schedule/b.h"\n')
        self.expect("planner/a.cpp", '#include "simulator/b.h"\n', "room")

    def test_worlds(self):
        for include in ("torch/torch.h", "ATen/ATen.h", "c10/core/Allocator.h", "QWidget",
                        "cuda_runtime.h", "cupti.h", "cuda/std/span", "QtCore/QObject"):
            for path in ("traces/a.h", "simulator/step/a.h", "planner/a.h", "report/a.h", "profiler/assembly/a.h",
                         "cli/a.h", "tests/traces/a.h", "bench/a.h"):
                self.expect(path, f"#pragma once\n#  include <{include}>\n", "world")
        self.expect("executor/a.cpp", "#include <ATen/ATen.h>\n")
        self.expect("executor/a.cpp", "#include <QWidget>\n", "world")
        self.expect("profiler/cupti/a.cpp", "#include <cupti.h>\n")
        self.expect("profiler/cupti/a.cpp", "#include <ATen/ATen.h>\n", "world")
        self.expect("gui/widgets/a.cpp", "#include <QWidget>\n")
        self.expect("tests/executor/a.cpp", "#include <ATen/ATen.h>\n")
        self.expect("traces/a.cpp", "#include <queue>\n#include <numeric>\n")

    def test_json(self):
        include = "#include <nlohmann/json.hpp>\n"
        self.expect("traces/trace_json.cpp", include)
        self.expect("traces/trace.cpp", include, "json")
        self.expect("traces/json_trace.cpp", include, "json")
        self.expect("tests/cli/plan_test.cpp", include)

    def test_printing(self):
        self.expect("cli/plan.cpp", "std::cout << 1;\n", "print")
        self.expect("cli/plan.cpp", 'printf("x");\n', "print")
        self.expect("cli/plan.cpp", 'std::printf("x");\n', "print")
        self.expect("cli/plan.cpp", "// never std::cout\nstd::snprintf(b, 1, f);\nout.puts(x);\n")
        self.expect("cli/main.cpp", "return run(std::cout, std::cerr);\n")

    def test_headers_and_length(self):
        self.expect("traces/a.h", "int f();\n", "pragma")
        self.expect("traces/a.h", "#pragma once\nusing namespace std;\n", "using")
        self.expect("traces/a.cpp", "int x;\n" * MAX_LINES)
        self.expect("traces/a.cpp", "int x;\n" * (MAX_LINES + 1), "length")

    def test_own_header_comes_first(self):
        header = {"traces/a.h": "#pragma once\n"}
        for text, expected in (
            ('// A.\n#include "traces/a.h"\n\n#include <string>\n', []),
            ('#include <string>\n#include "traces/a.h"\n', ["first"]),
            ("int x;\n", ["first"]),
        ):
            found = check_tree(header | {"traces/a.cpp": text})
            self.assertEqual([rule for _, _, rule, _ in found], expected, text)
        self.expect("traces/a.cpp", "#include <string>\n")

    def expect_tree(self, files, *expected):
        found = [(path, rule) for path, _, rule, _ in check_tree(files)]
        self.assertEqual(found, list(expected), files)

    def test_names_of_files(self):
        header, source = "#pragma once\n", '#include "report/view.h"\n'
        self.expect_tree({"report/view.h": header, "report/view.cpp": source})
        self.expect_tree({"gui/model/view.h": header, "report/view.h": header},
                         ("report/view.h", "file name"))
        self.expect_tree({"gui/model/view.h": header, "report/view.cpp": "int x;\n"},
                         ("report/view.cpp", "file name"))
        self.expect_tree({"cli/main.cpp": "", "cli/torch/main.cpp": ""})
        self.expect_tree({"report/view.h": header, "tests/report/view.h": header})

    def test_names_of_types(self):
        def two(one, other, path="report/b.h"):
            return {"gui/model/a.h": "#pragma once\n" + one, path: "#pragma once\n" + other}

        found = ("report/b.h", "type name")
        self.expect_tree(two("struct Stay {\n};\n", "struct Stay {\n};\n"), found)
        self.expect_tree(two("class Stay final : public Span {\n};\n", "enum class Stay : int { a };\n"), found)
        self.expect_tree(two("template <typename T>\nclass Stay {\n};\n", "struct Stay {};\n"), found)
        self.expect_tree(two("template <typename T> struct Stay {\n};\n", "struct Stay\n    : Span {\n};\n"), found)
        # Declared ahead, of one folder, inside another type, a member's definition, of a .cpp.
        self.expect_tree(two("struct Stay;\n", "struct Stay {\n};\n"))
        self.expect_tree(two("struct Stay {\n};\n", "struct Stay {\n};\n", "gui/model/b.h"))
        self.expect_tree(two("struct Stay {\n};\n", "struct Step {\n  struct Stay {\n  };\n};\n"))
        self.expect_tree(two("struct Stay {\n};\n", "struct Stay::Rows {\n};\n"))
        self.expect_tree({"gui/model/a.h": "#pragma once\nstruct Stay {\n};\n",
                          "report/b.cpp": "struct Stay {\n};\n"})

    def test_functions(self):
        def body(lines):
            return "  f();\n" * lines

        longest = MAX_FUNCTION_LINES - 2
        for head in ("void g() {", "Wide A::g(int x) const noexcept {", "A::A() : a_(1), b_{2} {",
                     "template <typename T> requires(x) bool operator==(T a) {", "A::~A() {",
                     "struct Other make(struct Raw& raw) {"):
            self.expect("traces/a.cpp", f"namespace a {{\n{head}\n{body(longest)}}}\n}}\n")
            self.expect("traces/a.cpp", f"namespace a {{\n{head}\n{body(longest + 1)}}}\n}}\n", "function")
        self.expect("traces/a.h", f"#pragma once\nclass A {{\n  int g() {{\n{body(99)}  }}\n}};\n", "function")
        self.expect("tests/traces/a.cpp", f"void g() {{\n{body(99)}}}\n")
        # None of these is one long function.
        self.expect("traces/a.cpp", "void f() {\n}\n" * 99)
        self.expect("traces/a.cpp", "const int kA[] = {\n" + "  f(),\n" * 99 + "};\n")
        self.expect("traces/a.cpp", "namespace {\n" + "int f(int);\n" * 99 + "}  // namespace\n")

    def test_functions_by_name(self):
        text = """#define OPEN {
// An if (x) {
A::A(int x) : text_("{ (\\"{"), brace_('{'), list_{1, 2} {
  const auto g = [&](int y) { return R"({)"; };
}
struct B : C {
  bool operator<(const B& other) const {
    return count == 1'000;
  }
};
const std::map<int, int> table = made(
    {1, 2});
int h() {
  return 1;
}
"""
        self.assertEqual(list(functions(text)), [(3, "A::A", 3), (7, "operator<", 3), (13, "h", 3)])

    def test_torch_h(self):
        files = {f"executor/f{i:03}.cpp": "#include <torch/torch.h>\n" for i in range(MAX_TORCH_H)}
        self.assertEqual(list(check_tree(files)), [])
        files["executor/one_more.cpp"] = "#include <torch/torch.h>\n"
        self.assertEqual([rule for _, _, rule, _ in check_tree(files)], ["torch.h"])


if __name__ == "__main__":
    unittest.main()
