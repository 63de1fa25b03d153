import type { Consumer } from '@overlay/platform/change-log'
import type { Context } from '@overlay/rpc'

export interface ConfigTypes {
  /** Waits until the config types that the caller may name are stored here. */
  ready(context: Context): Promise<void>
}

/** `wasLoaded`: whether the config types of policy have ever been copied into this schema. */
export function configTypes(
  wasLoaded: () => Promise<boolean>,
  followed: Pick<Consumer, 'waitFor' | 'catchUp'>,
): ConfigTypes {
  let isLoaded = false
  return {
    async ready({ positions, signal }) {
      if (positions.policy) return followed.waitFor(positions.policy, signal)
      isLoaded ||= await wasLoaded()
      if (!isLoaded) await followed.catchUp(signal)
      isLoaded = true
    },
  }
}
