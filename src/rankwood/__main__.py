from rankwood.cli import run

run()
