import { vitePreprocess } from '@sveltejs/vite-plugin-svelte'

export default {
  preprocess: vitePreprocess(),
  compilerOptions: {
    runes: true,
    discloseVersion: false,
    // Short names of scopes: a tenth of the first page would be these otherwise.
    cssHash: ({ hash, css }) => 's' + Number.parseInt(hash(css).replace(/[^0-9a-z]/g, ''), 36).toString(36).slice(-4),
  },
}
