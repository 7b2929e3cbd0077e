-- Q4, order priority checking.
SELECT o_orderpriority, count(*) AS order_count
FROM orders
WHERE o_orderdate >= DATE :'date'
  AND o_orderdate < DATE :'date' + INTERVAL '3' MONTH
  AND EXISTS (
      SELECT * FROM lineitem WHERE l_orderkey = o_orderkey AND l_commitdate < l_receiptdate)
GROUP BY o_orderpriority
ORDER BY o_orderpriority
