#include "app/demo_sample.h"

namespace kintsugi::app {

std::string_view demo_sample_sql() {
  return R"sql(
CREATE TABLE tenants (
  id bigint PRIMARY KEY,
  name text NOT NULL,
  plan text NOT NULL CHECK (plan IN ('free', 'team', 'business')),
  created_at timestamptz NOT NULL
);
CREATE TABLE users (
  tenant_id bigint NOT NULL REFERENCES tenants,
  id bigint NOT NULL,
  name text NOT NULL,
  email text NOT NULL,
  PRIMARY KEY (tenant_id, id)
);
CREATE TABLE orders (
  tenant_id bigint NOT NULL REFERENCES tenants,
  id bigint NOT NULL,
  user_id bigint NOT NULL,
  placed_at timestamptz NOT NULL,
  status text NOT NULL CHECK (status IN ('open', 'paid', 'shipped', 'returned')),
  PRIMARY KEY (tenant_id, id),
  FOREIGN KEY (tenant_id, user_id) REFERENCES users
);
CREATE TABLE order_items (
  tenant_id bigint NOT NULL,
  order_id bigint NOT NULL,
  line int NOT NULL,
  product text NOT NULL,
  quantity int NOT NULL CHECK (quantity > 0),
  unit_price numeric(10, 2) NOT NULL,
  PRIMARY KEY (tenant_id, order_id, line),
  FOREIGN KEY (tenant_id, order_id) REFERENCES orders
);
CREATE INDEX orders_by_user ON orders (tenant_id, user_id);

INSERT INTO tenants
SELECT t,
       (ARRAY['Ashdown Bicycles', 'Blue Heron Books', 'Cedar Lane Ceramics', 'Dovetail Joinery', 'Eastgate Coffee',
              'Fern and Fathom', 'Granite Peak Outdoor', 'Harbour Sailmakers', 'Ivory Key Pianos', 'Juniper Apothecary',
              'Kestrel Optics', 'Lantern Press', 'Meadow Dairy', 'Northlight Studio', 'Orchard Supply', 'Pepper Mill',
              'Quarry Stoneworks', 'Riverside Print', 'Saltbox Bakery', 'Thistle Garden'])[t],
       CASE WHEN t % 7 = 0 THEN 'business' WHEN t % 3 = 0 THEN 'free' ELSE 'team' END,
       timestamptz '2024-01-08 09:00:00+00' + t * interval '11 days'
FROM generate_series(1, 20) AS t;

INSERT INTO users
SELECT t.id, u, first || ' ' || last, lower(first) || '.' || lower(last) || '@' || replace(lower(t.name), ' ', '-') || '.example'
FROM tenants AS t,
     generate_series(1, 20) AS u,
     LATERAL (SELECT (ARRAY['Ada', 'Bela', 'Chen', 'Dana', 'Emil', 'Fatima', 'Goran', 'Hana', 'Ines', 'Jonas', 'Kavya',
                            'Liam', 'Mina', 'Noor', 'Otto', 'Priya', 'Quinn', 'Rosa', 'Sami', 'Tove'])[u] AS first,
                     (ARRAY['Abel', 'Brandt', 'Costa', 'Diaz', 'Endo', 'Farkas', 'Garcia', 'Holm', 'Ito', 'Jansen', 'Kumar',
                            'Lund', 'Moreau', 'Novak', 'Okafor', 'Park', 'Rossi', 'Silva', 'Tanaka', 'Weber'])
                           [1 + (t.id * 7 + u * 3) % 20] AS last) AS n;

-- Tenants are of different sizes: the first has most of the orders.
INSERT INTO orders
SELECT t.id, o, 1 + (o * 13 + t.id) % 20,
       timestamptz '2025-01-01 08:00:00+00' + (o * 97 + t.id * 31) % 8000 * interval '1 hour',
       (ARRAY['shipped', 'shipped', 'shipped', 'paid', 'paid', 'open', 'shipped', 'returned'])[1 + (o * 5 + t.id) % 8]
FROM tenants AS t, LATERAL generate_series(1, 40 + (800 / t.id)::int) AS o;

INSERT INTO order_items
SELECT o.tenant_id, o.id, l,
       (ARRAY['gift card', 'mug', 'notebook', 'poster', 'lamp', 'scarf', 'candle', 'basket', 'teapot', 'clock'])
         [1 + (o.id * 3 + l * 7 + o.tenant_id) % 10],
       1 + (o.id + l) % 4,
       ((o.id * 37 + l * 101 + o.tenant_id * 11) % 9000 + 250) / 100.0
FROM orders AS o, LATERAL generate_series(1, 1 + (o.id % 4)::int) AS l;

ANALYZE tenants, users, orders, order_items;
)sql";
}

}  // namespace kintsugi::app
