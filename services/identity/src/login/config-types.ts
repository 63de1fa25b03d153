import type { Consumer } from '@overlay/platform/change-log'
import type { Context } from '@overlay/rpc'

export interface ConfigTypes {
  /** Waits until the config types that the caller may name are stored here. */
  ready(context: Context): Promise<void>
}

/** `wasLoaded`: whether this schema has ever loaded the config types of policy. */
export function openConfigTypes(
  wasLoaded: () => Promise<boolean>,
  consumer: Pick<Consumer, 'waitFor' | 'catchUp'>,
): ConfigTypes {
  let isLoaded = false
  return {
    async ready({ positions, signal }) {
      if (positions.policy) return consumer.waitFor(positions.policy, signal)
      isLoaded ||= await wasLoaded()
      if (!isLoaded) await consumer.catchUp(signal)
      isLoaded = true
    },
  }
}
