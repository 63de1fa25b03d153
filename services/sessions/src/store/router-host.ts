import type { Database, Tx } from '@overlay/store/postgres'
import sql from 'sql-template-tag'
import {
  hostsOfCertificate,
  hostsOfListeners,
  type RefusedHost,
  refusedHosts,
} from '../domain/router-hosts.js'

/** Of the link listeners that a router has reported. */
export type AddressesIn = (linkListeners: Buffer) => readonly string[]

/** Called once for each router whose certificate cannot be read: it counts as one without hosts. */
export type NoteUnreadable = (routerId: string, err: unknown) => void

/**
 * Reserves hosts for a router in place of those that it had. One claim after the other: of two for one host, the first
 * one gets it. Returns those that the router may not have; undefined: there is no such router.
 */
export const claimHosts = (
  db: Pick<Database, 'transaction'>,
  routerId: string,
  asked: readonly string[],
  addressesIn: AddressesIn,
  noteUnreadable: NoteUnreadable,
): Promise<RefusedHost[] | undefined> =>
  db.transaction(undefined, async (tx) => {
    await tx.query(sql`select pg_advisory_xact_lock(hashtextextended('hosts of routers', 0))`)
    await readCertificates(tx, noteUnreadable)
    const { rows } = await tx.query<{ hosts: string[] | null }>(sql`
      select certificate_hosts as hosts from router where id = ${routerId} for no key update`)
    const [router] = rows
    if (!router) return undefined
    const owned = new Set(router.hosts)
    const isNew = asked.some((host) => !owned.has(host))
    const used = new Map(
      isNew
        ? [
            ...(await hostsInListeners(tx, routerId, addressesIn)),
            ...(await hostsInCertificates(tx, routerId, asked)),
          ]
        : [],
    )
    const refused = refusedHosts(asked, owned, used)
    const granted = asked.filter((host) => !refused.some((one) => one.host === host))
    await tx.query(sql`update router set certificate_hosts = ${granted} where id = ${routerId}`)
    return refused
  })

async function hostsInCertificates(
  tx: Tx,
  exceptId: string,
  hosts: readonly string[],
): Promise<[host: string, routerId: string][]> {
  const { rows } = await tx.query<{ host: string; id: string }>(sql`
    select host, id from router, unnest(certificate_hosts) as host
     where certificate_hosts && ${hosts}::text[] and id <> ${exceptId}`)
  return rows.map(({ host, id }) => [host, id])
}

/** Of routers that are connected. */
async function hostsInListeners(
  tx: Tx,
  exceptId: string,
  addressesIn: AddressesIn,
): Promise<[host: string, routerId: string][]> {
  const { rows } = await tx.query<{ id: string; protocols: Record<string, string>; listeners: Buffer }>(sql`
    select router_id as id, supported_protocols as protocols, link_listeners as listeners
      from live_presence where router_id <> ${exceptId}`)
  return rows.flatMap(({ id, protocols, listeners }) => {
    const hosts = hostsOfListeners([...Object.values(protocols), ...addressesIn(listeners)])
    return hosts.map((host): [string, string] => [host, id])
  })
}

const PAGE = 500

/** Those that were issued before hosts were kept, by this release or another one. */
async function readCertificates(tx: Tx, noteUnreadable: NoteUnreadable): Promise<void> {
  const hostsOf = (id: string, certPem: string): string[] => {
    try {
      return hostsOfCertificate(certPem)
    } catch (err) {
      noteUnreadable(id, err)
      return []
    }
  }
  for (;;) {
    const { rows } = await tx.query<{ id: string; certPem: string }>(sql`
      select id, cert_pem as "certPem" from router
       where certificate_hosts is null and cert_pem is not null limit ${PAGE}`)
    for (const { id, certPem } of rows)
      await tx.query(sql`
        update router set certificate_hosts = ${hostsOf(id, certPem)} where id = ${id}`)
    if (rows.length < PAGE) return
  }
}
