-- People who log in by a name and a password. What they may do is a token's, whose secret nobody has.
CREATE TABLE person (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    -- Argon2id with its parameters and salt, as a PHC string.
    password TEXT NOT NULL,
    token INTEGER NOT NULL UNIQUE REFERENCES token(id),
    created INTEGER NOT NULL
);
