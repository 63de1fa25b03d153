import { identity } from '@overlay/model'
import { allPages, columnsOf, plainOf, rowOf, tableOf } from '@overlay/store/kind-store'
import type { Db } from '@overlay/store/postgres'
import sql from 'sql-template-tag'
import { promisedEnrollment } from '../domain/requested-enrollment.js'

type Stored = Parameters<typeof rowOf>[1]

/** The longest lifetime of enrollments that can be set. */
const PROMISED_FOR = sql`interval '365 days'`

/**
 * The rows of identities for followers that load all of them. They contain the enrollment with which an identity was
 * created: pki may have missed the change that requested it.
 */
export const identityLoader = (db: Db) =>
  async function* (ids?: readonly string[]): AsyncIterable<{ readonly id: string; readonly json: object }> {
    const which = ids ? sql`id = any(${ids})` : sql`true`
    const all = allPages<Stored>((last, limit) =>
      db.query(sql`
        select ${columnsOf(identity)}, created_at > now() - ${PROMISED_FOR} as "mayWait" from ${tableOf(identity)}
         where id > ${last?.id ?? ''} and ${which} order by id limit ${limit}`),
    )
    for await (const stored of all) {
      const row = rowOf(identity, stored)
      const promised = stored.mayWait
        ? promisedEnrollment(row.enrollment as Parameters<typeof promisedEnrollment>[0])
        : undefined
      const json = plainOf(identity, row)
      yield { id: row.id, json: promised ? { ...json, enrollmentPromised: promised } : json }
    }
  }
