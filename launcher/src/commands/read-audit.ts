import {
  type ChangeEvent,
  type ChangeQuery,
  type Cursor,
  cursorIn,
  mergePages,
  readChanges,
} from '@overlay/store/audit'
import { openDatabase } from '@overlay/store/postgres'
import { withClient } from '@overlay/store/postgres/migrate'
import { AUDIT_READ_MS } from '../limits.js'
import { services } from '../servers/schemas.js'

/** Which changes to look for. Absent: all. */
export interface AuditQuery {
  readonly kind?: string | undefined
  /** Id of the changed entity. */
  readonly id?: string | undefined
  /** Name of the changed entity, before or after. */
  readonly name?: string | undefined
  /** Id, name or user name of the author. */
  readonly author?: string | undefined
  readonly request?: string | undefined
  readonly since?: Date | undefined
  readonly limit: number
}

type Filter = ChangeQuery['where']

/** The newest changes of all services, newest last. Reads only. */
export async function readAudit(ownerUrl: string, query: AuditQuery): Promise<ChangeEvent[]> {
  const authorIds = query.author === undefined ? [] : await idsOf(ownerUrl, query.author)
  const where = filterOf(query, authorIds)
  await using databases = openDatabases(ownerUrl)
  const found: ChangeEvent[] = []
  let behind: Cursor | undefined
  do {
    const limit = query.limit - found.length
    const { changes, next } = mergePages(await databases.read(where, behind, limit), {
      oldestFirst: false,
      limit,
    })
    found.push(...changes.map(({ json }) => JSON.parse(json) as ChangeEvent))
    behind = next
  } while (behind && found.length < query.limit)
  return withNames(ownerUrl, found.reverse())
}

function openDatabases(ownerUrl: string) {
  const databases = services.map((schema) => openDatabase(ownerUrl, schema, { max: 1 }))
  return {
    read: (where: Filter, behind: Cursor | undefined, limit: number) =>
      Promise.all(
        databases.map(async (db) => {
          const { schema } = db
          const query = { where, behind: behind && cursorIn(schema, behind), oldestFirst: false, limit }
          const page = await db.transaction(new Date(Date.now() + AUDIT_READ_MS), (tx) =>
            readChanges(tx, schema, query),
          )
          return { schema, ...page, settledMs: 0 }
        }),
      ),
    async [Symbol.asyncDispose]() {
      await Promise.all(databases.map((db) => db[Symbol.asyncDispose]()))
    },
  }
}

function filterOf(
  { kind, id, name, author, request, since }: AuditQuery,
  authorIds: readonly string[],
): Filter {
  const is = (symbol: string, value: string | undefined): Filter[] =>
    value === undefined ? [] : [{ op: '=', symbol, value }]
  const either = (...terms: readonly Filter[]): Filter[] => (terms.length > 0 ? [{ op: 'or', terms }] : [])
  return {
    op: 'and',
    terms: [
      { op: 'true' },
      ...is('entityId', id),
      ...is('kind', kind),
      ...either(...is('entityName', name), ...is('previousName', name)),
      ...either(...authorIds.flatMap((authorId) => is('authorId', authorId)), ...is('authorName', author)),
      ...is('requestId', request),
      ...(since === undefined ? [] : [{ op: '>=', symbol: 'timestamp', value: since } as const]),
    ],
  }
}

/** What is called so now, and the id itself. */
async function idsOf(ownerUrl: string, author: string): Promise<string[]> {
  const { rows } = await withClient(ownerUrl, (client) =>
    client.query<{ id: string }>(
      `select $1 as id
        union select id from identity.identity where name = $1
        union select identity_id from identity.authenticator where username = $1
        union select id from sessions.router where name = $1`,
      [author],
    ),
  )
  return rows.map(({ id }) => id)
}

/** Adds the present names of authors whose names the audit does not have, such as routers. */
async function withNames(ownerUrl: string, events: readonly ChangeEvent[]): Promise<ChangeEvent[]> {
  const unnamed = events.flatMap(({ metadata: { author } }) => (author.id && !author.name ? author.id : []))
  if (unnamed.length === 0) return [...events]
  const { rows } = await withClient(ownerUrl, (client) =>
    client.query<{ id: string; name: string }>(
      `select id, name from identity.identity where id = any($1)
        union select id, name from sessions.router where id = any($1)`,
      [unnamed],
    ),
  )
  const names = new Map(rows.map(({ id, name }) => [id, name]))
  return events.map((event) => {
    const { metadata } = event
    const name = metadata.author.name ?? names.get(metadata.author.id ?? '')
    return name === undefined
      ? event
      : { ...event, metadata: { ...metadata, author: { ...metadata.author, name } } }
  })
}
