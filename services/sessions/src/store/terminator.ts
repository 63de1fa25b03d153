import { terminator } from '@overlay/model'
import {
  changeOf,
  columnsOf,
  type Names,
  type RowChange,
  rowOf,
  type Seams,
  type Tx,
} from '@overlay/platform'
import { type Context, invalid, notFound } from '@overlay/rpc'
import sql, { type Sql } from 'sql-template-tag'

export const terminatorSeams = (names: Names): Seams<typeof terminator> => ({
  view: async (_db, rows) => rows.map(({ service, router }) => ({ serviceId: service, routerId: router })),

  async writing(tx, next, before, { context }) {
    const { address, router } = next
    if (address === '') throw invalid('address', 'address is required', address)
    if (!before) await requireService(tx, names, next.service, context)
    if (router !== before?.router) await requireRouter(tx, router)
    return {
      service: before?.service ?? next.service, // wire: accepted and ignored
      binding: next.binding || (address.startsWith('udp:') ? 'udp' : 'transport'),
    }
  },
})

/** Who follows the services waits until the commit: it ends what was made for a service that goes meanwhile. */
async function requireService(tx: Tx, names: Names, id: string, context: Context): Promise<void> {
  await tx.query(sql`select from followed where schema = 'policy' for share`)
  if (!(await names('services', [id], context)).has(id)) throw notFound('service', id)
}

async function requireRouter(tx: Tx, id: string): Promise<void> {
  const { rowCount } = await tx.query(sql`select from router where id = ${id} for key share`)
  if (!rowCount) throw notFound('router', id)
}

export async function endTerminators(tx: Tx, which: Sql): Promise<RowChange[]> {
  const { rows } = await tx.query(
    sql`delete from terminator where ${which} returning ${columnsOf(terminator)}`,
  )
  return rows.map((row) => changeOf(terminator, String(row.id), rowOf(terminator, row), null))
}
