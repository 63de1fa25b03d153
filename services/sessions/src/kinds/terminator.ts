import { terminator } from '@overlay/model'
import type { RowChange } from '@overlay/platform/change-log'
import { changeOf, columnsOf, rowOf, type Seams } from '@overlay/platform/kind-store'
import type { Tx } from '@overlay/platform/postgres'
import { invalid, notFound } from '@overlay/rpc'
import sql, { type Sql } from 'sql-template-tag'

export const terminatorSeams: Seams<typeof terminator> = {
  view: async (_db, rows) => rows.map(({ service, router }) => ({ serviceId: service, routerId: router })),

  async writing(_tx, next, before, { exists, isWritten }) {
    const { address, router } = next
    if (address === '') throw invalid('address', 'address is required', address)
    if (!before && !exists('services', next.service)) throw notFound('service', next.service)
    if (isWritten('router') && !exists('transit-routers', router)) throw notFound('router', router)
    return {
      service: before?.service ?? next.service, // wire: accepted and ignored
      binding: next.binding || (address.startsWith('udp:') ? 'udp' : 'transport'),
    }
  },
}

export async function endTerminators(tx: Tx, which: Sql): Promise<RowChange[]> {
  const { rows } = await tx.query(
    sql`delete from terminator where ${which} returning ${columnsOf(terminator)}`,
  )
  return rows.map((row) => changeOf(terminator, String(row.id), rowOf(terminator, row), null))
}
