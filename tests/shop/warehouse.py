"""A database with all kinds of keys, partitions and types, whose texts tell whether they were copied."""

from __future__ import annotations

import psycopg

PLANTED = ("Kim Possible", "middleton", "kim@", "+43 ", "hidden", "Country of", "district no")
"""What no copy without rows may have: parts of values of rows."""

_SCHEMA = """
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE DOMAIN percent AS numeric(5, 2) CHECK (VALUE BETWEEN 0 AND 100);
CREATE TABLE countries (code char(3) PRIMARY KEY, name text NOT NULL UNIQUE);
INSERT INTO countries SELECT lpad(n::text, 3, 'k'), 'Country of ' || n FROM generate_series(1, 200) n;
CREATE TABLE people (
    id uuid PRIMARY KEY, boss uuid REFERENCES people, country char(3) NOT NULL REFERENCES countries,
    zip text NOT NULL CHECK (length(zip) = 6), city text, phone text UNIQUE, born date, mood mood, ok boolean,
    score percent, tags text[], doc jsonb, bin bytea, addr inet, dur interval, f float8,
    state text NOT NULL CHECK (state IN ('new', 'paid')),
    upper_zip text GENERATED ALWAYS AS (upper(zip)) STORED,
    CONSTRAINT kim CHECK (phone LIKE '+43 kim%'), path lseg NOT NULL DEFAULT '[(0,0),(1,1)]');
INSERT INTO people (id, country, zip, city, phone, born, mood, ok, score, tags, doc, bin, addr, dur, f, state)
    SELECT md5(n::text)::uuid, lpad((1 + (c * c * c) % 200)::text, 3, 'k'),
        'mi' || lpad((n % 500)::text, 4, '0'),
        'middleton ' || (n % 500) / 5, CASE WHEN n % 4 > 0 THEN '+43 kim@' || n END,
        date '1950-01-01' + (n * 7) % 20000, (ARRAY['sad', 'ok', 'happy'])[1 + n % 3]::mood, n % 10 = 0,
        (n % 10001) / 100.0, ARRAY['hidden ' || n % 20, 'hidden ' || n % 7],
        jsonb_build_object('name', 'Kim Possible ' || n), decode(md5(n::text), 'hex'),
        ('192.168.' || n % 256 || '.' || n % 200)::inet, n % 1000 * interval '1 minute', sqrt(n),
        CASE WHEN n % 5 = 0 THEN 'new' ELSE 'paid' END
    FROM (SELECT n, n % 20 AS c FROM generate_series(1, 20000) n) numbered;
UPDATE people p SET boss = md5((1 + (hashtext(id::text) & 1023))::text)::uuid WHERE hashtext(zip) % 3 <> 0;
CREATE STATISTICS zip_to_city (dependencies) ON zip, city FROM people;
CREATE TABLE days (
    id bigint GENERATED ALWAYS AS IDENTITY, at timestamptz NOT NULL, kind text NOT NULL, v int,
    PRIMARY KEY (id, at)
) PARTITION BY RANGE (at);
CREATE TABLE days_1 PARTITION OF days FOR VALUES FROM ('2024-01-01') TO ('2024-02-01');
CREATE TABLE days_2 PARTITION OF days FOR VALUES FROM ('2024-02-01') TO ('2024-03-01');
INSERT INTO days (at, kind, v)
    SELECT '2024-01-01'::timestamptz + n * interval '2 minutes', 'hidden kind ' || n % 4, n % 100
    FROM generate_series(0, 42000) n;
CREATE TABLE events (at timestamptz NOT NULL, kind text NOT NULL) PARTITION BY LIST (kind);
CREATE TABLE events_a PARTITION OF events FOR VALUES IN ('alpha', 'beta') PARTITION BY RANGE (at);
CREATE TABLE events_a1 PARTITION OF events_a FOR VALUES FROM ('2024-01-01') TO ('2024-02-01');
CREATE TABLE events_a2 PARTITION OF events_a DEFAULT;
CREATE TABLE events_b PARTITION OF events DEFAULT;
INSERT INTO events SELECT at, (ARRAY['alpha', 'beta', 'hidden gamma', 'hidden delta'])[1 + v % 4] FROM days;
CREATE TABLE hashed (
    id serial PRIMARY KEY, t text CONSTRAINT begins CHECK (t LIKE 'hidden%')
) PARTITION BY HASH (id);
CREATE TABLE hashed_0 PARTITION OF hashed FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE hashed_1 PARTITION OF hashed FOR VALUES WITH (MODULUS 2, REMAINDER 1);
ALTER TABLE hashed_1 ADD CONSTRAINT goes_on CHECK (t LIKE 'hidden text%');
INSERT INTO hashed SELECT n, 'hidden text ' || n FROM generate_series(1, 5000) n;
CREATE TABLE tens (id int GENERATED ALWAYS AS IDENTITY, n int) PARTITION BY LIST ((n / 10 % 2));
CREATE TABLE tens_even PARTITION OF tens FOR VALUES IN (0);
CREATE TABLE tens_odd PARTITION OF tens FOR VALUES IN (1);
INSERT INTO tens (n) SELECT n FROM generate_series(0, 199) n;
CREATE TABLE visits (
    h int NOT NULL REFERENCES hashed, day_id bigint, day_at timestamptz,
    FOREIGN KEY (day_id, day_at) REFERENCES days);
INSERT INTO visits SELECT 1 + (id * id) % 700, id, at FROM days WHERE id % 3 = 0;
CREATE TABLE warehouses (w int PRIMARY KEY);
INSERT INTO warehouses SELECT generate_series(1, 5);
CREATE TABLE districts (w int REFERENCES warehouses, d int, name text, PRIMARY KEY (w, d));
INSERT INTO districts SELECT w, d, 'district no ' || w || d FROM warehouses, generate_series(1, 10) d;
CREATE TABLE buyers (w int, d int, b int, PRIMARY KEY (w, d, b), FOREIGN KEY (w, d) REFERENCES districts);
INSERT INTO buyers SELECT w, d, n FROM districts, generate_series(1, 300) n;
CREATE TABLE bought (
    w int, d int, o int, b int, PRIMARY KEY (w, d, o), FOREIGN KEY (w, d, b) REFERENCES buyers);
INSERT INTO bought SELECT w, d, n, 1 + n * 7 % 300 FROM districts, generate_series(1, 400) n;
CREATE TABLE hens (id int PRIMARY KEY, egg int);
CREATE TABLE eggs (id int PRIMARY KEY REFERENCES hens, hen int);
INSERT INTO hens SELECT n, NULLIF(n / 2 * 2, 0) FROM generate_series(1, 3000) n;
INSERT INTO eggs SELECT n * 2, n FROM generate_series(1, 1500) n;
ALTER TABLE hens ADD FOREIGN KEY (egg) REFERENCES eggs;
CREATE MATERIALIZED VIEW by_country AS SELECT country, count(*) FROM people GROUP BY country;
CREATE MATERIALIZED VIEW country_numbers AS SELECT substr(name, 12)::int AS n FROM countries;
CREATE MATERIALIZED VIEW odd_countries AS SELECT n FROM country_numbers WHERE n % 2 = 1;
CREATE INDEX by_number ON countries ((substr(name, 12)::int));
CREATE TABLE empty (id serial PRIMARY KEY, t text);
CREATE TABLE nothing ();
CREATE TABLE policed (id serial PRIMARY KEY, owner text);
INSERT INTO policed (owner) SELECT 'hidden ' || n FROM generate_series(1, 50) n;
ALTER TABLE policed ENABLE ROW LEVEL SECURITY;
ALTER TABLE policed FORCE ROW LEVEL SECURITY;
CREATE POLICY own ON policed USING (owner = current_setting('shop.tenant'));
CREATE TABLE "an odd ""name" ("a %s" int PRIMARY KEY, "tab	and" mood[]);
INSERT INTO "an odd ""name" SELECT n, ARRAY['ok']::mood[] FROM generate_series(1, 100) n;
CREATE SEQUENCE numbers;
CREATE TABLE numbered (id bigint DEFAULT nextval('numbers') PRIMARY KEY, square bigint UNIQUE, code bytea);
INSERT INTO numbered (square, code)
    SELECT n * n, decode(md5((n % 7)::text), 'hex') FROM generate_series(1, 1234) n;
CREATE UNIQUE INDEX first_codes ON numbered (code) WHERE id <= 7;
CREATE TABLE numbered_before (id bigint DEFAULT nextval('numbers') PRIMARY KEY);
INSERT INTO numbered_before SELECT generate_series(1, 30);
CREATE TABLE also_numbered (id bigint DEFAULT nextval('numbers') PRIMARY KEY);
INSERT INTO also_numbered SELECT generate_series(1, 30);
CREATE TABLE parents (id int, t text);
CREATE TABLE children (extra int) INHERITS (parents);
INSERT INTO children SELECT n, 'hidden ' || n, n FROM generate_series(1, 2000) n;
ANALYZE;
CREATE TABLE fresh (id int PRIMARY KEY, t text);
INSERT INTO fresh SELECT n, 'hidden ' || n FROM generate_series(1, 5000) n;
"""


def make(dsn: str) -> None:
    """Make the tables and their rows."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(_SCHEMA.encode())
