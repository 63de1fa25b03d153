import { createHash } from 'node:crypto'
import { html, raw } from 'hono/html'
import type { Answer, RequestContext } from './exchange.js'
import { forbidStoring, type PreparedBody, prepareBody, send, sendPrepared } from './send.js'
import { write } from './write.js'

/** Escaped text of a page. The tag `html` escapes what it receives, except other fragments. */
export type Fragment = ReturnType<typeof raw>

/** Renders a fragment. Values are escaped; arrays of fragments are joined. */
export const fragment = (strings: TemplateStringsArray, ...values: readonly unknown[]): Fragment =>
  html(strings, ...values) as Fragment // not a promise: no value is one

/** The reason why a form is shown again. */
export const renderAlert = (error: string | undefined): Fragment =>
  error === undefined ? fragment`` : fragment`<p class="box alert" role="alert">${error}</p>\n`

const STYLE = `
:root { color-scheme: light dark; --line: #8886; --soft: #8881 }
* { box-sizing: border-box }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 60rem; margin: 0 auto; padding: 1.5rem }
h1 { font-size: 1.6rem; line-height: 1.2 }
h2 { font-size: 1.25rem; margin-top: 2.5rem; border-bottom: 1px solid var(--line) }
h3 { font-size: 1rem; margin: 2rem 0 .25rem; overflow-wrap: anywhere }
h4 { font-size: .9rem; margin: 1rem 0 .25rem }
p, ul, dl { margin: .5rem 0 }
code { font-family: ui-monospace, monospace; font-size: .9em; overflow-wrap: anywhere }
pre, .box { background: var(--soft); border: 1px solid var(--line); border-radius: .3rem; padding: .75rem; overflow: auto }
table { border-collapse: collapse; width: 100%; font-size: .9rem }
th, td { text-align: left; vertical-align: top; padding: .25rem .5rem; border-bottom: 1px solid var(--line) }
:target { scroll-margin-top: 1rem; outline: 2px solid currentcolor; outline-offset: .3rem }
.scroll { overflow-x: auto }
body:has(.wide) { max-width: 84rem }
.narrow { max-width: 26rem; margin: 0 auto }
form { margin: 1rem 0 }
label { display: block; margin: .75rem 0 .25rem; font-weight: 600 }
input, textarea, button { font: inherit; width: 100%; padding: .5rem .6rem; border: 1px solid var(--line); border-radius: .3rem }
textarea { font-family: ui-monospace, monospace; font-size: .85rem; resize: vertical }
button { margin-top: 1rem; font-weight: 600; cursor: pointer }
input:focus-visible, textarea:focus-visible, button:focus-visible, a:focus-visible { outline: 2px solid currentcolor; outline-offset: .15rem }
.alert { border-left: .3rem solid #c33 }
.warning { border-left: .3rem solid #d90 }
.fine { border-left: .3rem solid #393 }
.box + .box { margin-top: -.25rem }
.bad { color: #c33; font-weight: 600 }
@media (prefers-color-scheme: dark) { .bad { color: #f77 } }
.number { font-variant-numeric: tabular-nums }
.wide h2 { margin-top: 1.75rem }
.wide td { overflow-wrap: break-word; max-width: 26rem }
.wide th { white-space: nowrap }
.small { font-size: .85rem }
.bar { display: flex; flex-wrap: wrap; gap: .5rem 1rem; align-items: center; justify-content: space-between }
.bar p { flex: 1 1 20rem }
.bar form { margin: 0 }
.bar button { width: auto; margin: 0 }
.codes { columns: 2; list-style: none; padding: .75rem }
img { display: block; max-width: 100%; margin: 1rem auto; background: #fff }
`

const styleHash = createHash('sha256').update(STYLE).digest('base64')
const policyWith = (formAction: string): string =>
  `default-src 'none'; style-src 'sha256-${styleHash}'; img-src data:; base-uri 'none'; form-action ${formAction}; frame-ancestors 'none'`
const POLICY = policyWith("'none'")
const HTML_TYPE = 'text/html; charset=utf-8'

/** A whole page without scripts and without resources from elsewhere. */
export const htmlPage = (title: string, content: Fragment): PreparedBody =>
  prepareBody(htmlText(title, content), HTML_TYPE)

function htmlText(title: string, content: Fragment, shape = ''): string {
  const page = fragment`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<link rel="icon" href="data:,">
<style>${raw(STYLE)}</style>
</head>
<body>
<main class="${shape}">
<h1>${title}</h1>
${content}
</main>
</body>
</html>
`
  return page.toString()
}

/** Sends a page, with the headers that keep it from loading or running anything else. */
export function sendHtml(c: RequestContext, page: PreparedBody, status = 200): Answer {
  protect(c, POLICY)
  c.env.outgoing.setHeader('cache-control', 'no-cache')
  return status === 200 ? sendPrepared(c, page) : send(c, status, page.bytes, page.type)
}

/**
 * Sends a page of a dialogue, which holds a form or a secret: no cache may keep it, and its length says nothing about
 * its contents but the length, since it is not compressed.
 * @param formAction where forms may lead, and the redirects behind them: sources of a content security policy
 */
export function sendDialogue(
  c: RequestContext,
  { title, content, status = 200, shape = 'narrow' }: Dialogue,
  formAction = "'none'",
): Response {
  protect(c, policyWith(formAction))
  forbidStoring(c)
  return write(c, status, { 'content-type': HTML_TYPE }, htmlText(title, content, shape))
}

export interface Dialogue {
  readonly title: string
  readonly content: Fragment
  readonly status?: number
  readonly shape?: 'narrow' | 'wide'
}

function protect({ env: { outgoing } }: RequestContext, policy: string): void {
  outgoing.setHeader('content-security-policy', policy)
  outgoing.setHeader('x-content-type-options', 'nosniff')
  outgoing.setHeader('x-frame-options', 'DENY')
  outgoing.setHeader('referrer-policy', 'no-referrer')
}
