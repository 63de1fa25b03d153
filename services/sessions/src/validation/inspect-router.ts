import { ctrlType, InspectRequest, InspectResponse } from '@overlay/channel'
import type { Db } from '@overlay/store/postgres'
import { decodeLimited } from '../channel/handlers.js'
import type { RouterMessages } from '../channel/router-channel.js'
import { showable } from '../domain/router-text.js'
import { MOST_VALIDATED, VALIDATE_ROUTER_MS } from '../limits.js'
import type { RouterPresence } from '../routers/router-presence.js'

export interface InspectDeps {
  readonly changeLog: { readonly db: Db }
  readonly presence: Pick<RouterPresence, 'isOnline'>
  readonly messages: Pick<RouterMessages, 'request'>
}

/** A router that is validated. */
export interface ValidatedRouter {
  readonly id: string
  readonly name: string
}

/** Checks one router. Returns an encoded result, also where the router does not answer. */
export type RouterCheck = (deps: InspectDeps, router: ValidatedRouter) => Promise<Uint8Array>

/** A router has not said what it has, with the text for the operator. */
class NotInspected extends Error {
  override readonly name = 'NotInspected'
}

/** The result of `check`; that of `refused`, with the text for the operator, if the router has not said what it has. */
export async function orRefused(
  check: () => Promise<Uint8Array>,
  refused: (message: string) => Uint8Array,
): Promise<Uint8Array> {
  try {
    return await check()
  } catch (err) {
    if (!(err instanceof NotInspected)) throw err
    return refused(err.message)
  }
}

/** Values of a router by name, parsed. Throws NotInspected. */
export async function inspectRouter(
  { presence, messages }: InspectDeps,
  routerId: string,
  names: string[],
): Promise<ReadonlyMap<string, unknown>> {
  if (!presence.isOnline(routerId)) throw new NotInspected(`router ${routerId} is not connected`)
  try {
    const body = InspectRequest.encode({ requestedValues: names }).finish()
    const answer = await messages.request(
      routerId,
      { type: ctrlType.inspectRequest, body },
      VALIDATE_ROUTER_MS,
    )
    const { errors, values } = decodeLimited(InspectResponse, answer.body)
    if (errors.length > 0 && values.length === 0) throw new Error(errors.map(showable).join(', '))
    return new Map(values.map(({ name, value }) => [name, JSON.parse(value)]))
  } catch (err) {
    if (err instanceof SyntaxError) throw new NotInspected('the answer of the router is not JSON')
    throw new NotInspected(err instanceof Error ? err.message : String(err))
  }
}

export const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The objects of a member that is a list or a map; none if it is missing or something else. Throws NotInspected. */
export function objectsIn(value: unknown, member: string): readonly Readonly<Record<string, unknown>>[] {
  const found = isObject(value) ? value[member] : undefined
  const all = isObject(found) ? Object.values(found) : Array.isArray(found) ? found : []
  if (all.length > MOST_VALIDATED)
    throw new NotInspected(`the router has more than ${MOST_VALIDATED} ${member}`)
  return all.filter(isObject)
}

/** Empty if it is missing, or cannot be shown. */
export const textIn = (value: Readonly<Record<string, unknown>>, member: string): string => {
  const found = value[member]
  return typeof found === 'string' ? showable(found) : ''
}
