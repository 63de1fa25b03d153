import { execFileSync } from 'node:child_process'

/** Builds the bundles, which these tests run. */
export function setup(): void {
  execFileSync('sh', ['-c', '. scripts/prepare.sh; prepare_build'], {
    cwd: `${import.meta.dirname}/..`,
    stdio: 'inherit',
  })
}
