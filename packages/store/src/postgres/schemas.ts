import { createHash, createHmac, pbkdf2Sync, randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { codeOf, withClient } from './client.js'

/** The schema and the role of one service. */
export interface ServiceSchema {
  readonly schema: string
  readonly role: string
  readonly password: string
}

/** The owner of a database may not prepare it. */
export class MissingRights extends Error {
  /** @param sql for an administrator of the database. It has verifiers of passwords, no passwords. */
  constructor(
    readonly sql: string,
    cause: unknown,
  ) {
    super('the owner of the database may not prepare it', { cause })
  }
}

/**
 * Creates schemas and roles, as the owner of the database. A role may read and write the rows of its own schema, in
 * present and later tables; in its audit it may only insert. Of other schemas it may read the view `head`, as all roles
 * may, and nothing else. Idempotent. Throws MissingRights if the owner may not create roles.
 */
export async function prepareSchemas(ownerUrl: string, schemas: readonly ServiceSchema[]): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    const todo = await withClient(ownerUrl, (client) => findTodo(client, ownerUrl, schemas))
    if (todo.length === 0) return
    try {
      await withClient(ownerUrl, (client) => inOneTransaction(client, todo))
      return
    } catch (err) {
      if (codeOf(err) === INSUFFICIENT_PRIVILEGE) throw new MissingRights(script(todo), err)
      if (!COLLISIONS.has(codeOf(err)) || attempt === 10) throw err
      await delay(20 * attempt) // another database is being prepared: roles belong to the whole cluster
    }
  }
}

interface Todo extends ServiceSchema {
  readonly owner: string
  readonly role_exists: boolean
  readonly password_holds: boolean
  readonly reads_control: boolean
}

const INSUFFICIENT_PRIVILEGE = '42501'
const COLLISIONS = new Set(['XX000', '23505', '42710', '42P06', '40P01'])

/** The schemas that are not yet prepared. */
async function findTodo(
  client: pg.Client,
  ownerUrl: string,
  schemas: readonly ServiceSchema[],
): Promise<readonly Todo[]> {
  const { rows } = await client.query<Omit<Todo, 'password' | 'password_holds'> & { prepared: boolean }>(
    FIND,
    [schemas.map(({ schema }) => schema), schemas.map(({ role }) => role)],
  )
  const states = await Promise.all(
    schemas.map(async (schema, at) => {
      const row = rows[at]
      if (!row) throw new Error(`no state of schema ${schema.schema}`)
      const password_holds = row.role_exists && (await admits(ownerUrl, schema))
      return { ...row, ...schema, password_holds }
    }),
  )
  return states.filter(({ prepared, password_holds }) => !prepared || !password_holds)
}

const FIND = `
  select current_user::text as owner,
         r.oid is not null as role_exists,
         coalesce(has_function_privilege(r.oid, 'pg_control_system()', 'execute'), true) as reads_control,
         coalesce(has_schema_privilege(r.oid, n.oid, 'usage'), false)
         and coalesce(r.rolconfig @> array['search_path=' || quote_ident(schema)], false)
         and (select count(distinct d.defaclobjtype) = 2
                from pg_default_acl d, aclexplode(d.defaclacl) a
               where d.defaclnamespace = n.oid and d.defaclrole = current_user::regrole
                 and d.defaclobjtype in ('r', 'S') and a.grantee = r.oid)
         and not exists (
             select from pg_class c
              where c.relnamespace = n.oid and c.relkind in ('r', 'p')
                and not (has_table_privilege(r.oid, c.oid, 'select') and has_table_privilege(r.oid, c.oid, 'insert')
                     and (c.relname = 'audit' or has_table_privilege(r.oid, c.oid, 'update')
                                             and has_table_privilege(r.oid, c.oid, 'delete'))))
         and not exists (
             select from pg_class c
              where c.relnamespace = n.oid and c.relname = 'head'
                and not (has_schema_privilege('public', n.oid, 'usage')
                     and has_table_privilege('public', c.oid, 'select')))
         and not exists (
             select from pg_proc p
              where p.pronamespace = n.oid and p.prosecdef and has_function_privilege('public', p.oid, 'execute'))
         as prepared
    from unnest($1::text[], $2::text[]) with ordinality as service (schema, role, place)
    left join pg_roles r on r.rolname = role
    left join pg_namespace n on n.nspname = schema
   order by place`

async function admits(ownerUrl: string, { role, password }: ServiceSchema): Promise<boolean> {
  const url = new URL(ownerUrl)
  url.username = encodeURIComponent(role)
  url.password = encodeURIComponent(password)
  try {
    await withClient(url.href, async () => undefined)
    return true
  } catch (err) {
    if (/^(28...|42501)$/.test(codeOf(err))) return false
    throw err
  }
}

async function inOneTransaction(client: pg.Client, todo: readonly Todo[]): Promise<void> {
  await client.query("begin; select pg_advisory_xact_lock(hashtextextended('prepare schemas', 0))")
  const { rows } = await client.query<{ role: string }>('select rolname as role from pg_roles')
  const roles = new Set(rows.map(({ role }) => role)) // another replica may have created them meanwhile
  for (const one of todo) {
    const now = { ...one, role_exists: roles.has(one.role) }
    await client.query(statements(now, pg.escapeLiteral(verifierOf(one.password))).join(';\n'))
  }
  await client.query('commit')
}

const script = (todo: readonly Todo[]): string =>
  `begin;\n\n${todo.map((one) => `${statements(one, pg.escapeLiteral(verifierOf(one.password))).join(';\n')};\n`).join('\n')}\ncommit;\n`

function statements(
  { schema, role, owner, role_exists, password_holds, reads_control }: Todo,
  password: string,
) {
  const inSchema = pg.escapeIdentifier(schema)
  const [to, by] = [pg.escapeIdentifier(role), pg.escapeIdentifier(owner)]
  const defaults = `alter default privileges for role ${by} in schema ${inSchema}`
  return [
    ...(role_exists ? [] : [`create role ${to}`]),
    ...(password_holds ? [] : [`alter role ${to} login password ${password}`]),
    `alter role ${to} set search_path = ${inSchema}`,
    `create schema if not exists ${inSchema} authorization ${by}`,
    `grant usage on schema ${inSchema} to ${to}`,
    `grant select, insert, update, delete on all tables in schema ${inSchema} to ${to}`,
    keepAudit(`${inSchema}.audit`, to),
    `grant usage, select on all sequences in schema ${inSchema} to ${to}`,
    `grant execute on all functions in schema ${inSchema} to ${to}`,
    `${defaults} grant select, insert, update, delete on tables to ${to}`,
    `${defaults} grant usage, select on sequences to ${to}`,
    `${defaults} grant execute on functions to ${to}`,
    ...publishHead(inSchema),
    ...(reads_control ? [] : [grantControl(to)]),
  ]
}

/** A role only inserts into its audit. Before the first migration there is none; the migration revokes this too. */
const keepAudit = (audit: string, role: string): string =>
  `do $$ begin revoke update, delete, truncate on ${audit} from ${role};
   exception when undefined_table then null; end $$`

/**
 * All roles may read the head, and use nothing else. The migrations do the same; a restored dump may lack it, because its
 * roles did not exist. Before the migrations there is nothing to do.
 */
const publishHead = (schema: string): string[] => [
  `do $$ begin revoke all on function ${schema}.prune_audit(int, int) from public;
   exception when undefined_function then null; end $$`,
  `do $$ begin grant select on ${schema}.head to public; grant usage on schema ${schema} to public;
   exception when undefined_table then null; end $$`,
]

/** Used to recognize restored backups. Where the owner may not grant it, other marks must suffice. */
const grantControl = (role: string): string =>
  `do $$ begin grant execute on function pg_control_system() to ${role};
   exception when insufficient_privilege then null; end $$`

/** The stored form of a password (SCRAM, RFC 5803). It keeps the password out of the server's logs. */
function verifierOf(password: string): string {
  const [salt, iterations] = [randomBytes(16), 4096]
  const salted = pbkdf2Sync(password, salt, iterations, 32, 'sha256')
  const keyOf = (name: string) => createHmac('sha256', salted).update(name).digest()
  const stored = createHash('sha256').update(keyOf('Client Key')).digest('base64')
  return `SCRAM-SHA-256$${iterations}:${salt.toString('base64')}$${stored}:${keyOf('Server Key').toString('base64')}`
}
