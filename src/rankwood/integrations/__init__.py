"""Tools that trainings are logged to and models live in; each is imported where it is used."""
