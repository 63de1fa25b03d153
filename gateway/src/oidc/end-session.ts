import { invalid } from '@overlay/rpc'
import { raw } from '../http/body.js'
import { callContext } from '../http/calls.js'
import { acceptBody, type RequestContext } from '../http/exchange.js'
import { sendDialogue } from '../http/html.js'
import { MAX_PARAMETER_CHARACTERS } from '../limits.js'
import type { Handlers } from './operations.js'
import { messagePage } from './pages.js'
import {
  isClient,
  mayRedirect,
  type Provider,
  redirect,
  redirectSettings,
  withParameters,
} from './provider.js'
import { FORM_TYPE, isBrowser, parameterOf, parametersOf, queryParametersOf } from './requests.js'
import { OauthRefusal, plainText } from './responses.js'

const LOGGED_OUT = '/oidc/logged-out'

/** Logging out, at the request of a client. */
export const endSession = (provider: Provider): Handlers => ({
  'GET /oidc/end_session': (c) => end(provider, c, queryParametersOf(c)),
  'POST /oidc/end_session': acceptBody(raw('form', [FORM_TYPE]), (c, _, bytes) =>
    end(provider, c, parametersOf(c, bytes)),
  ),
  'GET /oidc/logged-out': (c) =>
    isBrowser(c.env.incoming)
      ? sendDialogue(c, messagePage('Signed out', 'You can close this page.', 200))
      : plainText(c, 200, 'signed out'),
})

async function end(
  { oidc, logoutRedirects, noteUnregistered }: Provider,
  c: RequestContext,
  parameters: URLSearchParams,
): Promise<Response> {
  const idTokenHint = parameterOf(parameters, 'id_token_hint')
  const target = parameterOf(parameters, 'post_logout_redirect_uri')
  const state = parameters.get('state') ?? ''
  // differs: without it nothing would end
  if (idTokenHint === undefined) throw invalid('id_token_hint', 'id_token_hint is missing')
  const clientId = parameterOf(parameters, 'client_id') ?? ''
  // differs: patterns hold here as well
  if (target !== undefined && !mayRedirect(logoutRedirects, target)) {
    const setting = redirectSettings.post_logout_redirect_uri
    noteUnregistered(c, { uri: target, clientId: isClient(clientId) ? clientId : '', setting })
    throw invalid('post_logout_redirect_uri', 'the redirect URI is not registered')
  }
  if (state.length > MAX_PARAMETER_CHARACTERS) throw invalid('state', 'state is too long')
  const { error } = await oidc.endSession({ idTokenHint, clientId }, callContext(c))
  if (error) throw new OauthRefusal(error.error, error.description)
  return redirect(c, target === undefined ? LOGGED_OUT : withParameters(target, { state }))
}
