import { evaluatesPosture } from '../domain/router-features.js'
import type { RouterPresence } from './router-presence.js'

/** The ones of these routers that are connected and evaluate posture checks. None while replicas of 0.1.0 have routers. */
export const evaluatingRouters = (
  presence: Pick<RouterPresence, 'of' | 'hasFormerReplicas'>,
  ids: readonly string[],
): readonly string[] =>
  presence.hasFormerReplicas()
    ? []
    : ids.filter((id) => {
        const connections = presence.of(id)
        return connections.length > 0 && connections.every(({ features }) => evaluatesPosture(features))
      })
