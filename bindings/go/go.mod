module rankwood

go 1.24
