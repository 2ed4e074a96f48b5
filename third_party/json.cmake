# Header-only.
find_package(nlohmann_json 3.10 REQUIRED GLOBAL)
