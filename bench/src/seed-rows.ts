import { names } from './topology.js'

/** The id, the name and the user name of a row. */
export const rowName = (at: number): string => `bench-row-${at}`

/**
 * Adds identities, each with an authenticator of a password and one of a certificate, directly in the database:
 * a hundred thousand take seconds. They can log in. The password is that of the other identities.
 */
export async function seedRows(
  query: (text: string, values?: readonly unknown[]) => Promise<unknown>,
  count: number,
): Promise<void> {
  await query('set search_path = identity')
  await query(
    `insert into identity (id, name, type, is_admin, auth_policy_id)
     select name, name, 'Default', false, 'default'
       from generate_series(0, $1::int - 1) n, concat('bench-row-', n) name`,
    [count],
  )
  await query(
    `insert into authenticator (id, method, identity_id, username, password)
     select name, 'updb', name, name, (select password from authenticator where username = $2)
       from generate_series(0, $1::int - 1) n, concat('bench-row-', n) name`,
    [count, names.username(0)],
  )
  await query(
    `insert into authenticator (id, method, identity_id, cert_pem, fingerprint)
     select concat(name, '-cert'), 'cert', name, '', left(encode(sha256(name::bytea), 'hex'), 40)
       from generate_series(0, $1::int - 1) n, concat('bench-row-', n) name`,
    [count],
  )
  await query('vacuum analyze identity')
  await query('vacuum analyze authenticator')
}
