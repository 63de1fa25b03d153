import type { Db, Tx } from '@overlay/store/postgres'
import sql from 'sql-template-tag'
import type { KeySetState } from '../domain/key-set-age.js'
import type { KeySet, PublishedKey } from '../domain/published-keys.js'

/** An enabled signer, with the published key of that name. */
export interface Signer {
  readonly id: string
  readonly name: string
  readonly issuer: string
  readonly audience: string
  readonly claimsProperty: string
  readonly useExternalId: boolean
  /** Its only key, and the name of that key. Null: it publishes its keys. */
  readonly certPem: string | null
  readonly certKid: string | null
  readonly endpoint: string | null
  readonly key: PublishedKey | null
  readonly fetchedAtMs: number | null
  readonly nowMs: number
}

/** wire: the `authenticatorId` of a session that a token of the signer has opened. */
export const authenticatorOf = (signerId: string): string => `extJwtId:${signerId}`

/** Keys from another address than the present one do not count. */
export async function enabledSigner(db: Db, issuer: string, kid: string): Promise<Signer | undefined> {
  const { rows } = await db.query<Signer>(
    sql`
    select s.id, s.name, s.issuer, s.audience, s.claims_property as "claimsProperty",
           s.use_external_id as "useExternalId", s.cert_pem as "certPem", coalesce(s.kid, s.fingerprint) as "certKid",
           s.jwks_endpoint as endpoint, k.keys -> ${kid}::text as key,
           extract(epoch from k.fetched_at)::float8 * 1000 as "fetchedAtMs",
           extract(epoch from clock_timestamp())::float8 * 1000 as "nowMs"
      from external_jwt_signer s
      left join signer_key_set k on k.signer_id = s.id and k.endpoint = s.jwks_endpoint
     where s.issuer = ${issuer} and s.enabled`,
    'enabled-signer',
  )
  return rows[0]
}

export interface LockedKeySet extends KeySetState {
  /** Another replica fetches at this moment. */
  readonly isBusy: boolean
  readonly fetchNumber: number
  /** The key that was missing is there now. */
  readonly isFound: boolean
}

/**
 * Locks what is stored about the keys at this address. Undefined: the signer is deleted, or has another address.
 * @param missing id of a key that was not there
 */
export async function lockKeySet(
  tx: Tx,
  signerId: string,
  endpoint: string,
  missing: string | undefined,
): Promise<LockedKeySet | undefined> {
  await tx.query(sql`
    insert into signer_key_set (signer_id, endpoint)
    select id, jwks_endpoint from external_jwt_signer where id = ${signerId} and jwks_endpoint = ${endpoint}
        on conflict (signer_id) do update
       set endpoint = excluded.endpoint, keys = '{}', fetched_at = null, fetching_until = null,
           failed_at = null, failures = 0, misses = 0
     where signer_key_set.endpoint <> excluded.endpoint`)
  const { rows } = await tx.query<LockedKeySet>(sql`
    select extract(epoch from fetched_at)::float8 * 1000 as "fetchedAtMs",
           extract(epoch from failed_at)::float8 * 1000 as "failedAtMs", failures, misses,
           coalesce(fetching_until > clock_timestamp(), false) as "isBusy",
           coalesce(keys ? ${missing ?? null}::text, false) as "isFound", fetch_number::float8 as "fetchNumber",
           extract(epoch from clock_timestamp())::float8 * 1000 as "nowMs"
      from signer_key_set where signer_id = ${signerId} and endpoint = ${endpoint} for update`)
  return rows[0]
}

/** Reserves the fetch for this replica. Returns its number. */
export async function beginFetch(tx: Tx, signerId: string, forMs: number): Promise<number> {
  const { rows } = await tx.query<{ fetchNumber: number }>(sql`
    update signer_key_set
       set fetch_number = fetch_number + 1, fetching_until = clock_timestamp() + ${forMs}::float8 * interval '1 millisecond'
     where signer_id = ${signerId} returning fetch_number::float8 as "fetchNumber"`)
  return rows[0]?.fetchNumber ?? 0
}

/** Replaces the keys. Does nothing if a later fetch has begun. */
export const storeKeys = (db: Db, signerId: string, fetchNumber: number, keys: KeySet, misses: number) =>
  db.query(
    sql`
    update signer_key_set
       set keys = ${JSON.stringify(keys)}::jsonb, misses = ${misses},
           fetched_at = clock_timestamp(), fetching_until = null, failed_at = null, failures = 0
     where signer_id = ${signerId} and fetch_number = ${fetchNumber}`,
    'store-signer-keys',
  )

/** Keeps the keys there are. */
export const storeFailedFetch = (db: Db, signerId: string, fetchNumber: number) =>
  db.query(
    sql`
    update signer_key_set set fetching_until = null, failed_at = clock_timestamp(), failures = failures + 1
     where signer_id = ${signerId} and fetch_number = ${fetchNumber}`,
    'store-failed-fetch',
  )

/** Whether that fetch has ended. */
export async function hasFetchEnded(db: Db, signerId: string, fetchNumber: number): Promise<boolean> {
  const { rows } = await db.query(
    sql`
    select from signer_key_set
     where signer_id = ${signerId} and fetch_number = ${fetchNumber} and fetching_until > clock_timestamp()`,
    'fetch-of-keys',
  )
  return rows.length === 0
}
