import { isSealedForAll, openDatabase, seal, unseal } from '@overlay/store/postgres'
import type { Logger } from 'pino'
import sql from 'sql-template-tag'

export interface ResealOptions {
  readonly databaseUrl: string
  /** The secret that identity and pki shared in earlier releases. */
  readonly from: string
  /** The secret of identity. */
  readonly to: string
  readonly log: Logger
}

const BATCH = 100

/** Encrypts the second factors under the shared secret with the secret of identity. It may be repeated. */
export async function resealSecondFactors({ databaseUrl, from, to, log }: ResealOptions): Promise<void> {
  await using db = openDatabase(databaseUrl, 'identity', { max: 1 })
  for (let resealed = 0; ; ) {
    const count = await db.transaction(undefined, async (tx) => {
      const { rows } = await tx.query<{ id: string; sealed: string }>(sql`
        select identity_id as id, sealed from second_factor where ${isSealedForAll(sql`sealed`)}
         limit ${BATCH} for update`)
      for (const { id, sealed } of rows)
        await tx.query(sql`
          update second_factor set sealed = ${seal(to, id, unseal(from, id, sealed))} where identity_id = ${id}`)
      return rows.length
    })
    resealed += count
    if (count < BATCH) {
      if (resealed > 0) log.info({ resealed }, 'second factors encrypted with a secret of their own')
      return
    }
  }
}
