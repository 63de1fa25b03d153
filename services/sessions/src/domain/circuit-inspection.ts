import { LONGEST_INSPECTION } from '../limits.js'

/**
 * Whether a router has the end of a circuit at this address, by its answer to an inspection of the circuit. Throws if
 * the answer is not JSON, or too long.
 */
export function hasCircuitEnd(inspection: string, address: string): boolean {
  if (inspection.length > LONGEST_INSPECTION) throw new Error('an inspection of a circuit that is too long')
  const { xgressDetails } = JSON.parse(inspection) as { xgressDetails?: unknown }
  return typeof xgressDetails === 'object' && xgressDetails !== null && Object.hasOwn(xgressDetails, address)
}
