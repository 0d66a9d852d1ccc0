from rankwood.cli import main

main()
