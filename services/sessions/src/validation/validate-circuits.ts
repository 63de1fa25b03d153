import { type ValidatedCircuit, ValidatedCircuits } from '@overlay/channel'
import sql from 'sql-template-tag'
import { isShowable } from '../domain/router-text.js'
import { MOST_DESTINATIONS } from '../limits.js'
import { circuitsById } from '../store/circuit.js'
import { inspectRouter, isObject, objectsIn, orRefused, type RouterCheck, textIn } from './inspect-router.js'

const [FORWARDER, EDGE, SDK] = ['router-circuits', 'router-edge-circuits', 'router-sdk-circuits'] as const
/** wire: such a destination is a client that has the end of the circuit itself. */
const IN_CLIENT = 'xg-edge-fwd'

/** Circuits that begin or end while the router is asked are no errors. */
export const validateCircuits: RouterCheck = async (deps, { id: routerId, name: routerName }) => {
  const { db } = deps.changeLog
  const details = new Map<string, ValidatedCircuit>()
  const result = (success: boolean, message: string) =>
    ValidatedCircuits.encode({ routerId, routerName, success, message, details }).finish()
  return orRefused(
    async () => {
      const before = await circuitsOver(deps, routerId)
      const values = await inspectRouter(deps, routerId, [FORWARDER, EDGE, SDK])
      if (!values.has(FORWARDER)) return result(true, '') // wire: an older router does not say
      const after = await circuitsOver(deps, routerId)
      const forwarder = byId(values.get(FORWARDER), 'id')
      const edge = byId(values.get(EDGE), 'circuitId')
      const sdk = byId(values.get(SDK), 'circuitId')
      for (const circuitId of after) {
        const found = forwarder.get(circuitId)
        const destinations = textsIn(found?.destinations)
        const isInClient = [...destinations.values()].includes(IN_CLIENT)
        const detail = {
          ...{ circuitId, missingInController: false, destinations },
          missingInForwarder: !found,
          missingInEdge: isInClient && !edge.has(circuitId),
          missingInSdk: isInClient && !sdk.has(circuitId),
        }
        if (before.has(circuitId)) details.set(circuitId, detail)
      }
      const others = [...new Set([...forwarder.keys(), ...edge.keys(), ...sdk.keys()])].filter(
        (id) => !before.has(id) && !after.has(id),
      )
      const moved = await circuitsById(db, others) // to other routers: they are not this one's any more
      for (const circuitId of others) {
        if (moved.has(circuitId)) continue
        details.set(circuitId, {
          ...{ circuitId, missingInController: true, missingInForwarder: !forwarder.has(circuitId) },
          ...{ missingInEdge: false, missingInSdk: false },
          destinations: textsIn(forwarder.get(circuitId)?.destinations),
        })
      }
      return result(true, '')
    },
    (message) => result(false, message),
  )
}

async function circuitsOver(
  { changeLog }: Parameters<RouterCheck>[0],
  routerId: string,
): Promise<ReadonlySet<string>> {
  const { rows } = await changeLog.db.query<{ id: string }>(
    sql`select id from circuit where router_ids @> array[${routerId}::text]`,
  )
  return new Set(rows.map(({ id }) => id))
}

const byId = (value: unknown, member: string): ReadonlyMap<string, Readonly<Record<string, unknown>>> =>
  new Map(objectsIn(value, 'circuits').map((circuit) => [textIn(circuit, member), circuit]))

const textsIn = (value: unknown): Map<string, string> =>
  new Map(
    Object.entries(isObject(value) ? value : {})
      .slice(0, MOST_DESTINATIONS)
      .flatMap(([key, text]) =>
        typeof text === 'string' && [key, text].every(isShowable) ? [[key, text]] : [],
      ),
  )
