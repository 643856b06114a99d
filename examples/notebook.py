"""The cells of `notebook.ipynb` as text: a shop, and a courier who sees where to go and nothing else."""

# %% [markdown]
# # Maia in a notebook
#
# A shop shares its orders with a courier, who sees where to go and not what was bought or by whom.
# `examples/notebook.py` has the same cells as plain text.

# %%
import subprocess
import sys
import tempfile
from pathlib import Path

import pandas as pd

import maia

home = Path(tempfile.mkdtemp(), "shop")


def run(command: str) -> None:
    """Run a command of `maia` in the home, as one would in a terminal."""
    subprocess.run([sys.executable, "-m", "maia.cli", "-q", *command.split(), "--home", home], check=True)


# %% [markdown]
# A home, three keys, a signed event type, and who may do what.

# %%
subprocess.run([sys.executable, "-m", "maia.cli", "-q", "domain", "init", home], check=True)
for name in ("owner", "till", "courier"):
    run(f"key new {name} --no-passphrase")
run("type define owner/Order@1 --attribute customer:string:1 --attribute goods:string:2 --attribute street:string:3")
for name in ("broker", "till"):
    run(f"grant --from owner --to {name} --type owner/Order --action publish")
run("grant --from owner --to courier --type owner/Order --action subscribe --attribute 3")

# %% [markdown]
# Publishing says what became of every row. With `strict` nothing is published when any row is refused.

# %%
shop = maia.open(home)
orders = pd.DataFrame({"customer": ["Ada", "Ben"], "goods": ["tea", "jam"], "street": ["Mill Lane", "Park Row"]})
done = shop.client("till").publish(orders, "Order", strict=True)
print(done)

# %% [markdown]
# The courier's view, and why a cell is empty.

# %%
seen = shop.client("courier").read("Order").orderBy("street")
print(seen.toPandas())

# %%
print(shop.explain("Order", principal="courier", attribute="customer"))
