import type { SpanFacts, Tracing } from '@overlay/rpc'
import type { Sql } from 'sql-template-tag'
import type { Database, Db, Tx } from './db.js'

/** The same database, whose statements and transactions are spans of the traces that they serve. */
export function tracedDatabase(tracing: Tracing, database: Database): Database {
  const { schema } = database
  const place = { 'db.system.name': 'postgresql', 'db.namespace': schema }

  function statementFacts({ text }: Sql, name: Parameters<Db['query']>[1]): SpanFacts {
    const [operation = ''] = /[a-z]+/i.exec(text) ?? []
    return {
      name: `${typeof name === 'string' ? name : operation.toLowerCase()} ${schema}`,
      kind: 'client',
      attributes: { ...place, 'db.query.text': text }, // values are parameters
    }
  }
  const traced =
    (query: Db['query']): Db['query'] =>
    (text, name) =>
      tracing.active() === undefined
        ? query(text, name)
        : tracing.within(statementFacts(text, name), () => query(text, name))

  const transaction: SpanFacts = { name: `transaction ${schema}`, kind: 'client', attributes: place }
  return {
    ...database,
    query: traced(database.query),
    transaction: (deadline, work) =>
      tracing.within(transaction, () =>
        database.transaction(deadline, (tx) =>
          work({ inTransaction: true, query: traced(tx.query) } satisfies Tx),
        ),
      ),
  }
}
