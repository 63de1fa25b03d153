import type { Context } from '@overlay/rpc'
import type { Consumer } from '@overlay/store/change-log'

/** Waits until the config types that a login names are stored here. */
export type WaitForConfigTypes = (names: readonly string[], context: Context) => Promise<void>

/** `wasLoaded`: whether this schema has ever loaded the config types of policy. */
export function waitForConfigTypesOf(
  wasLoaded: () => Promise<boolean>,
  consumer: Pick<Consumer, 'waitFor' | 'catchUp'>,
): WaitForConfigTypes {
  let isLoaded = false
  return async (names, { positions: { policy }, signal }) => {
    if (names.length === 0) return
    if (policy) return consumer.waitFor(policy, signal)
    isLoaded ||= await wasLoaded()
    if (!isLoaded) await consumer.catchUp(signal)
    isLoaded = true
  }
}
