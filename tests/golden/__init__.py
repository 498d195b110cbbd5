"""Golden files: ledgers, stores, saved policies and exports, as versions of before wrote them."""
