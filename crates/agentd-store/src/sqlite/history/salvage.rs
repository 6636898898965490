//! The rows of a table that can still be read, although a page of it is damaged.

use rusqlite::Connection;

/// The most reads of one table. Each damaged row costs a few.
const MOST_READS: usize = 200_000;
/// How far to look if the last row is not known, because the end of the table is damaged.
const BLIND_ROWS: i64 = 10_000;

/// What to read: rows whose ids are above the first number, up to the second one, in order. The third one is set to the id
/// of each row that was handled.
pub(super) type ReadRows<'a> = dyn FnMut(i64, i64, &mut i64) -> rusqlite::Result<()> + 'a;

/// Reads the rows after this id in ranges, which become smaller where they cannot be read. Returns how many rows are lost.
pub(super) fn rows(
    connection: &Connection,
    table: &str,
    after: i64,
    read: &mut ReadRows<'_>,
) -> u64 {
    let known = last_row(connection, table);
    let last = known.unwrap_or_else(|| after.saturating_add(BLIND_ROWS));
    let (mut low, mut lost) = (after, 0);
    let mut width = last.saturating_sub(low);
    for _ in 0..MOST_READS {
        if low >= last {
            break;
        }
        let high = low.saturating_add(width.max(1)).min(last);
        let mut handled = low;
        match read(low, high, &mut handled) {
            Ok(()) => {
                low = high;
                width = width.saturating_mul(2);
            }
            Err(_) if handled > low => low = handled,
            Err(_) if high - low == 1 => {
                lost += 1;
                low = high;
            }
            Err(_) => width = (high - low) / 2,
        }
    }
    match (known, lost) {
        // How many rows there were is not known.
        (None, lost) => lost.min(1),
        (Some(_), lost) => lost,
    }
}

/// The id of the last row, as far as it can be found out. What the database counts may be damaged, and too small.
fn last_row(connection: &Connection, table: &str) -> Option<i64> {
    let counted = connection.query_row(
        "SELECT seq FROM sqlite_sequence WHERE name = ?1",
        [table],
        |row| row.get(0),
    );
    let sql = format!("SELECT coalesce(max(rowid), 0) FROM {table}");
    let found = connection.query_row(&sql, [], |row| row.get(0));
    counted.ok().max(found.ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads of a table whose rows `bad` cannot be read.
    fn salvaged(last: i64, bad: &[i64]) -> (Vec<i64>, u64) {
        let connection = Connection::open_in_memory().unwrap();
        connection
            .execute("CREATE TABLE t (id INTEGER PRIMARY KEY)", [])
            .unwrap();
        connection
            .execute("INSERT INTO t VALUES (?1)", [last])
            .unwrap();
        let mut found = Vec::new();
        let lost = rows(&connection, "t", 0, &mut |low, high, handled| {
            for id in low + 1..=high {
                if bad.contains(&id) {
                    return Err(rusqlite::Error::InvalidQuery);
                }
                found.push(id);
                *handled = id;
            }
            Ok(())
        });
        (found, lost)
    }

    #[test]
    fn every_row_that_can_be_read_is_read_once_and_the_others_are_counted() {
        for bad in [&[][..], &[1], &[50], &[7, 8, 9, 30], &[49, 50]] {
            let (found, lost) = salvaged(50, bad);
            let good: Vec<i64> = (1..=50).filter(|id| !bad.contains(id)).collect();
            assert_eq!(found, good, "{bad:?}");
            assert_eq!(lost, bad.len() as u64);
        }
        let all: Vec<i64> = (1..=50).collect();
        assert_eq!(salvaged(50, &all), (Vec::new(), 50));
    }

    #[test]
    fn the_last_row_is_not_before_one_that_is_found() {
        let connection = Connection::open_in_memory().unwrap();
        connection
            .execute_batch(
                "CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT);
                 INSERT INTO t VALUES (50), (60);
                 DELETE FROM t WHERE id = 60;",
            )
            .unwrap();
        assert_eq!(last_row(&connection, "t"), Some(60));
        let damage = "UPDATE sqlite_sequence SET seq = 3";
        connection.execute(damage, []).unwrap();
        assert_eq!(last_row(&connection, "t"), Some(50));
        assert_eq!(last_row(&connection, "none"), None);
    }
}
