# Logging of the builder and the programs; never in formats/ or engine/.
find_package(spdlog REQUIRED GLOBAL)
