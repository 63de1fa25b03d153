import { MAX_COST } from './terminator-precedence.js'

const CIRCUIT_COST = 2
const FAILURE_COST = 20
const SUCCESS_CREDIT = 2
/** Each minute, for terminators with failures. */
const CREDIT = 5

interface Load {
  circuits: number
  failureCost: number
}

/**
 * The dynamic costs of terminators in one process: their open circuits, and dials that have failed. Terminators without
 * costs take no memory.
 */
export function openCosts() {
  const loads = new Map<string, Load>()
  const touched = new Set<string>()

  function change(id: string, apply: (load: Load) => void): void {
    const load = loads.get(id) ?? { circuits: 0, failureCost: 0 }
    const before = costOf(load)
    apply(load)
    if (load.circuits === 0 && load.failureCost === 0) loads.delete(id)
    else loads.set(id, load)
    if (costOf(load) !== before) touched.add(id)
  }
  const forgive = (id: string, cost: number): void =>
    change(id, (load) => {
      load.failureCost = Math.max(0, load.failureCost - cost) // differs: no rest stays for ever
    })

  return {
    /** 0 to 65535 */
    costOf: (id: string): number => costOf(loads.get(id)),
    dialSucceeded: (id: string): void => forgive(id, SUCCESS_CREDIT),
    dialFailed: (id: string): void =>
      change(id, (load) => {
        load.failureCost = Math.min(MAX_COST, load.failureCost + FAILURE_COST)
      }),
    circuitOpened: (id: string): void =>
      change(id, (load) => {
        load.circuits += 1
      }),
    circuitClosed: (id: string): void =>
      change(id, (load) => {
        load.circuits = Math.max(0, load.circuits - 1)
      }),
    /** The open circuits of each terminator. Those that open or close meanwhile count with the next call. */
    recount(circuits: ReadonlyMap<string, number>): void {
      for (const id of new Set([...loads.keys(), ...circuits.keys()]))
        change(id, (load) => {
          load.circuits = circuits.get(id) ?? 0
        })
    },
    /** To be called once a minute: failures are forgiven, and all costs are reported again. */
    credit(): void {
      for (const [id, { failureCost }] of loads) {
        touched.add(id)
        if (failureCost > 0) forgive(id, CREDIT)
      }
    },
    /** The costs that have changed since the last call, or may have. */
    changed(): ReadonlyMap<string, number> {
      const changes = new Map([...touched].map((id) => [id, costOf(loads.get(id))]))
      touched.clear()
      return changes
    },
  }
}

export type TerminatorCosts = ReturnType<typeof openCosts>

const costOf = (load: Load | undefined): number =>
  load ? Math.min(MAX_COST, load.circuits * CIRCUIT_COST + load.failureCost) : 0
