"""The licences of packages that are linked into what is installed, from `cargo metadata` on stdin."""
import json
import pathlib
import sys

metadata = json.load(sys.stdin)
packages = {package["id"]: package for package in metadata["packages"]}
nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
members = set(metadata["workspace_members"])
# What is installed, and what that is made of: neither tests nor what only builds.
installed = ("wavetap-cli", "wavetap-hip-emulator", "wavetap-kfd-emulator", "wavetap-hsa-tool", "wavetap-ranges")
todo = [package["id"] for package in packages.values() if package["name"] in installed]
assert len(todo) == len(installed), "a package of these was renamed"
seen = set()
while todo:
    one = todo.pop()
    if one in seen:
        continue
    seen.add(one)
    todo += [dep["pkg"] for dep in nodes[one]["deps"] if any(kind["kind"] is None for kind in dep["dep_kinds"])]

print("Packages that are linked into Wavetap, with their licences.\n")
missing = []
for package in sorted((packages[one] for one in seen - members), key=lambda package: package["name"]):
    print("=" * 80)
    print(f"{package['name']} {package['version']}: {package['license']}")
    print(package["repository"] or "")
    folder = pathlib.Path(package["manifest_path"]).parent
    texts = sorted(path for path in folder.iterdir()
                   if path.is_file() and path.name.lower().startswith(("licen", "copying", "notice", "unlicense")))
    if not texts:
        missing.append(package["name"])
        print("\n(Its package has no file with the text; its repository has.)")
    for path in texts:
        print(f"\n--- {path.name}\n{path.read_text(errors='replace').strip()}")
print(f"{len(seen - members)} packages, {len(missing)} without a text", file=sys.stderr)
