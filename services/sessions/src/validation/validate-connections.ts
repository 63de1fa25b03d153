import { ValidatedComponent } from '@overlay/channel'
import { connectedIdentities } from '../store/identity-connection.js'
import { inspectRouter, isObject, NotInspected, objectsIn, type RouterCheck } from './inspect-router.js'

const NAME = 'identity-connection-statuses'

/** differs: identities that are shown as connected, and are not, are so for a minute at most; they are no errors. */
export const validateConnections: RouterCheck = async (deps, { id: componentId, name: componentName }) => {
  const result = (success: boolean, errors: string[]) =>
    ValidatedComponent.encode({
      componentType: 'router',
      componentId,
      componentName,
      success,
      errors,
    }).finish()
  if (!deps.presence.isOnline(componentId)) return result(true, [])
  try {
    const value = (await inspectRouter(deps, componentId, [NAME])).get(NAME)
    const all =
      isObject(value) && isObject(value.identity_connections) ? value.identity_connections : undefined
    if (!all) return result(false, ['the router does not say which identities are connected'])
    const connected = Object.keys(all).filter((id) =>
      objectsIn(all[id], 'connections').some(({ closed }) => closed !== true),
    )
    const shown = await connectedIdentities(deps.changeLog.db, connected)
    const missing = connected.filter((id) => !shown.has(id))
    return result(
      true,
      missing.map((id) => `router reports identity ${id} connected, but controller disagrees`),
    )
  } catch (err) {
    if (!(err instanceof NotInspected)) throw err
    return result(false, [err.message])
  }
}
