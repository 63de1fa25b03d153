import type { Service } from '@overlay/model'
import { type Context, Fault } from '@overlay/rpc'
import { type Cursor, compareCursors, cursorIn, mergePages, type Page } from '@overlay/store/audit'
import { AUDIT_READ_MS } from '../limits.js'
import type { Services } from './services.js'

export interface AuditQuery {
  readonly filter: string
  /** Only changes after this cursor in the order of the list. Absent: from its beginning. */
  readonly behind?: Cursor | undefined
  readonly oldestFirst: boolean
  readonly limit: number
}

const schemas: readonly Service[] = ['identity', 'pki', 'policy', 'sessions']

/** A page of the audit of all services. Fails, naming the service, if one of them does not answer. */
export async function readAudit(
  { auditOf }: Pick<Services, 'auditOf'>,
  { filter, behind, oldestFirst, limit }: AuditQuery,
  context: Context,
): Promise<Page> {
  const deadline = new Date(
    Math.min(Date.now() + AUDIT_READ_MS, context.deadline?.getTime() ?? Number.MAX_VALUE),
  )
  const own = { ...context, deadline }
  const pages = await Promise.all(
    schemas.map(async (schema) => {
      const request = { filter, behind: behind && cursorIn(schema, behind), oldestFirst, limit }
      const { changes, ...page } = await nameOwner(schema, auditOf(schema).list(request, own))
      return {
        schema,
        changes: changes.map(({ json, ...change }) => ({ ...change, json: json.toString() })),
        ...page,
      }
    }),
  )
  const { changes, next } = mergePages(pages, { oldestFirst, limit })
  // what was settled stays so, even if a clock or a writer of another role says otherwise for a while
  const isBack = oldestFirst && next && behind && compareCursors(next, behind) < 0
  return { changes, next: isBack ? behind : next }
}

/** The event of one change. */
export async function readAuditedChange(
  { auditOf }: Pick<Services, 'auditOf'>,
  { schema, id }: { readonly schema: Service; readonly id: number },
  context: Context,
): Promise<Buffer> {
  return (await nameOwner(schema, auditOf(schema).get({ id }, context))).json
}

export const isSchema = (name: string): name is Service => (schemas as readonly string[]).includes(name)

async function nameOwner<T>(schema: Service, answer: Promise<T>): Promise<T> {
  try {
    return await answer
  } catch (err) {
    if (!(err instanceof Fault) || (err.code !== 'UNAVAILABLE' && err.code !== 'TIMEOUT')) throw err
    throw new Fault(err.code, `the audit of ${schema} does not answer in time`, err)
  }
}
