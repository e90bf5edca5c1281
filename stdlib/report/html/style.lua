-- SPDX-License-Identifier: Apache-2.0
-- style.lua: how the page looks: on a screen, light or dark as the reader's system is; on a narrow one; and on one sheet of A4, which is
-- light whatever the screen is. Orange and blue are told apart by all who see colours, and heights by all who do not (bars.lua).
-- luacheck: no max line length

local screen = [==[
:root{--bg:#fffffb;--ink:#1c1d1f;--sub:#55585d;--rule:#d6d6d0;--acc:#8c1d2f;--idle:#f1f1ec;--zone:#f4eeee;--tie:#e6e8ea;
--F:#1a4a7d;--B:#bd5418;--I:#c8741f;--W:#54290f;--onF:#fff;--onB:#fff;--onI:#1c1d1f;--onW:#fff;
--m1:#33373c;--m2:#646a71;--m3:#8f959b;--m4:#2c7f79;--m5:#8b8376}
@media(prefers-color-scheme:dark){:root{--bg:#15171a;--ink:#e6e6e1;--sub:#a6a9ad;--rule:#3a3d42;--acc:#f0909c;--idle:#1f2226;--zone:#241d20;--tie:#2a2f35;
--F:#8fc0ee;--B:#d96f2e;--I:#f0b070;--W:#a8642f;--onF:#111;--onB:#111;--onI:#111;--onW:#111;
--m1:#d8dadd;--m2:#9aa0a7;--m3:#63696f;--m4:#4fb3aa;--m5:#8f8778}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;text-size-adjust:100%}
body{margin:0 auto;padding:1.5rem 1rem 4rem;max-width:72rem;background:var(--bg);color:var(--ink);font:16px/1.5 Charter,"Bitstream Charter","Sitka Text",Cambria,Georgia,serif;font-variant-numeric:lining-nums tabular-nums}
h1,h2,h3,p,ul,ol,figure,table,pre{margin:0 0 .75rem}
h1{font-size:1.15rem;font-weight:600;letter-spacing:.01em}
h2{font-size:1rem;font-weight:600;font-style:italic;line-height:1.35}
.kind{margin:0;color:var(--sub);font-size:.8125rem}
.verdict{font-size:clamp(1.1875rem,.9rem + 1.1vw,1.5625rem);line-height:1.38;max-width:46em;text-wrap:pretty}
.nb{white-space:nowrap}.verdict b{font-weight:600}
.sub,figcaption,caption,small{color:var(--sub);font-size:.8125rem;line-height:1.45}
p{max-width:44em}.sub{max-width:70em}
a{color:var(--acc)}
main{border-top:1px solid var(--ink);margin-top:1.25rem}
section{padding:1rem 0 .25rem;border-bottom:1px solid var(--rule);min-width:0}
section>*,.two>*{min-width:0}
.two section{border-bottom:0}.cont{padding-top:0}
.quiet{font-weight:400;color:var(--sub);font-size:.875rem}
.warn{list-style:none;padding:0;max-width:48em}.warn li{margin:0 0 .4rem;padding-left:.75rem;border-left:2px solid var(--acc)}
.sev{color:var(--acc);font-weight:600}
code,pre{font:.8125em/1.45 ui-monospace,"SF Mono",Menlo,Consolas,"DejaVu Sans Mono",monospace}
pre{white-space:pre-wrap;overflow-wrap:anywhere;background:var(--idle);padding:.6rem .75rem}
code{overflow-wrap:anywhere}
svg text,.lab,.hd,.legend,button,output,table,summary{font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Liberation Sans",Arial,sans-serif}
svg text{font-size:11px;fill:var(--sub)}.sc g text{paint-order:stroke;stroke:var(--bg);stroke-width:3px;stroke-linejoin:round}
svg{display:block}
svg .b{fill:var(--ink);font-weight:600}.end{text-anchor:end}.mid{text-anchor:middle}svg .acc{fill:var(--acc)}
.legend{list-style:none;padding:0;display:flex;flex-wrap:wrap;gap:.2rem 1.1rem;font-size:.8125rem;line-height:1.5}
.legend li{display:flex;align-items:center;gap:.4rem}
.sw{width:22px;height:14px;flex:none;display:inline-block;background:var(--idle)}.sw path{fill:none}
.idle{border:1px solid var(--rule)}
.kF{stroke:var(--F)}.kB{stroke:var(--B)}.kI{stroke:var(--I)}.kW{stroke:var(--W)}
.sep{stroke:var(--bg);stroke-width:.6px;vector-effect:non-scaling-stroke}
.grid{stroke:var(--rule);stroke-width:1px;vector-effect:non-scaling-stroke;fill:none}.mark{stroke:var(--ink);stroke-dasharray:2 3}
.fine{display:none}.z .fine{display:inline}.it{font-style:italic}.brk{stroke:var(--ink);stroke-width:.75}
.torn{fill:var(--rule)}
.zoom{display:flex;flex-wrap:wrap;gap:.35rem;margin:0 0 .6rem}
button{font-size:.8125rem;color:var(--ink);background:none;border:1px solid var(--sub);border-radius:2px;padding:.3rem .6rem;min-height:2rem;cursor:pointer}
button[aria-pressed=true]{background:var(--ink);color:var(--bg);border-color:var(--ink)}
:focus-visible{outline:2px solid var(--acc);outline-offset:2px}
.tl{display:grid;grid-template-columns:4.9rem minmax(0,1fr) 2.6rem;column-gap:.5rem}
.hd{font-size:11px;line-height:18px;color:var(--sub)}.r{text-align:right}i{font-style:normal}
.lab{display:flex;flex-direction:column;font-size:11px;color:var(--sub);white-space:nowrap}.lab span{height:var(--h);line-height:var(--h)}
#tl,#ov,.plot{height:calc(var(--h)*var(--p))}.plot{position:relative;background:var(--idle);touch-action:pan-y;cursor:crosshair}
#ov{position:absolute;inset:0;pointer-events:none}
#ov rect{fill:none;stroke:var(--ink);stroke-width:2}
#ov text{font-size:9px;text-anchor:middle}#ov .cut{font-size:12px;fill:var(--ink)}
.ax text{text-anchor:middle}.ax text:first-child{text-anchor:start}
output{display:block;min-height:3.2rem;font-size:.8125rem;line-height:1.45;padding:.35rem 0;border-bottom:1px solid var(--rule);margin-bottom:.5rem}
.mem{grid-template-columns:1.6rem minmax(0,1fr) 2.6rem}.mem .lab{padding-top:32px}.mem .lab span{height:13px;line-height:13px}
.m1{fill:var(--m1);background:var(--m1)}.m2{fill:var(--m2);background:var(--m2)}.m3{fill:var(--m3);background:var(--m3)}.m4{fill:var(--m4);background:var(--m4)}.m5{fill:var(--m5);background:var(--m5)}
.mem rect{stroke:var(--bg);stroke-width:1}
.lim{stroke:var(--acc);stroke-width:1.5;stroke-dasharray:5 3}.cap{stroke:var(--ink);stroke-width:1.5}.err line{stroke:var(--ink);stroke-width:1.5}
.axis{stroke:var(--ink)}.tick{stroke:var(--rule)}
.nofitzone{fill:var(--zone)}.tiezone{fill:var(--tie)}
.sc .acc{fill:var(--acc)!important}.sc text{fill:var(--ink)}.sc .yl,.sc .ax{fill:var(--sub)}
.pc{fill:none;stroke:var(--acc);stroke-width:2}.pf{fill:var(--ink)}.pt{fill:var(--bg);stroke:var(--ink);stroke-width:1.75}.px{stroke:var(--sub);stroke-width:1.75;fill:none}
.ik{display:inline;vertical-align:-2px;margin:0 .15rem 0 .5rem}
.gback{fill:var(--zone);stroke:var(--acc);stroke-width:1}.gerr{fill:var(--m3)}
.ga{max-width:38rem;margin-bottom:.5rem}
table{border-collapse:collapse;font-size:.8125rem;line-height:1.4;width:100%}
caption{text-align:left;padding-bottom:.2rem}
th,td{text-align:left;vertical-align:baseline;padding:.22rem .6rem .22rem 0;font-weight:400;border-bottom:1px solid var(--rule);overflow-wrap:break-word}
.rules td,.rules th,.chg td,.chg th{overflow-wrap:normal}.because{min-width:9rem}td code,th code{overflow-wrap:normal}
thead th{color:var(--sub);border-bottom:1px solid var(--ink)}
.n td,.n thead th:not(:first-child){text-align:right;padding:.22rem 0 .22rem .5rem;white-space:nowrap}
.sort thead th,.n thead th:not(:first-child){white-space:normal!important;vertical-align:bottom}.sort button{text-align:inherit;font-size:inherit}.sort tbody th{min-width:5.2rem;overflow-wrap:anywhere}
.sort thead button{border:0;padding:.1rem 0;min-height:1.75rem;color:inherit}
.sort [aria-sort] button::after{content:" \2193"}.sort [aria-sort=ascending] button::after{content:" \2191"}
.chosen th,.chosen td{font-weight:600}.nofit th,.nofit td{color:var(--sub)}
em{color:var(--acc);font-style:normal;font-size:.92em;margin-left:.25rem}
.dec{padding-left:1.2rem;max-width:48em}
.rules td:first-child{white-space:nowrap}.rules .loc{white-space:normal;width:11rem}.rules .src{width:12.5rem;overflow-wrap:anywhere}.rules tbody th{width:9.5rem}
.paper{display:none}.bar{width:40%}.n td.bar{padding-left:.75rem}.runs{grid-template-columns:9rem minmax(0,1fr);}.runs .lab{padding-top:0;line-height:1.2}
.plan{display:grid;grid-template-columns:9rem minmax(0,1fr);margin:0 0 .75rem;gap:.2rem .75rem;max-width:46em}.plan dt{color:var(--sub);grid-column:1}.plan dd{margin:0;grid-column:2;overflow-wrap:anywhere}
.n tbody th small{display:block;font-size:.92em;line-height:1.3}.n tbody th small.why{color:var(--sub)}.fr{stroke:var(--acc);stroke-width:1.5;stroke-dasharray:1 2}
summary{cursor:pointer;font-size:.875rem;padding:.3rem 0}details{margin-bottom:.5rem}
@media(scripting:none){.zoom,.js{display:none}.sort button::after{content:none!important}}
]==]

local narrow = [==[
@media(max-width:599px){.wide{display:none}.lab i,.hd i{display:none}.tl{grid-template-columns:1.6rem minmax(0,1fr) 2.35rem;column-gap:.35rem}.sep{stroke-width:0}.z .sep{stroke-width:.6px}
.rules,.rules tbody,.rules tr,.rules td,.rules th,.chg,.chg tbody,.chg tr,.chg td,.chg th,.figs,.figs tbody,.figs tr,.figs td,.figs th{display:block;border:0;padding:0}
.rules thead,.chg thead,.figs thead{position:absolute;clip-path:inset(50%);width:1px;height:1px;overflow:hidden}
.rules tr,.chg tr,.figs tr{border-bottom:1px solid var(--rule);padding:.35rem 0}
tspan{display:none}.rules td:first-child,.rules th,.rules .loc,.rules td:last-child{display:inline;margin-right:.4rem}.chg th,.figs th{font-weight:600}
output{min-height:5.6rem}}
@media(min-width:1000px){body{padding:2.5rem 2rem 5rem}
section{display:grid;grid-template-columns:9.5rem minmax(0,1fr);column-gap:1.5rem}
.two{display:grid;grid-template-columns:minmax(0,1fr) minmax(0,1fr);column-gap:2rem;border-bottom:1px solid var(--rule)}
.two section{display:block}}
]==]

local paper = [==[
@page{size:A4;margin:8mm 11mm}
@media print{.paper{display:block}#ranks tbody tr:nth-child(n+25){display:none}:root{--bg:#fff;--ink:#000;--sub:#3c3f43;--rule:#bbb;--acc:#8c1d2f;--idle:#f1f1ec;--zone:#f4eeee;--tie:#e6e8ea;--F:#1a4a7d;--B:#bd5418;--I:#c8741f;--W:#54290f;--m1:#33373c;--m2:#646a71;--m3:#8f959b;--m4:#2c7f79;--m5:#8b8376}
*{-webkit-print-color-adjust:exact;print-color-adjust:exact}
body{zoom:.96;font-size:8.2pt;line-height:1.32;padding:0;max-width:none}
h1{font-size:10pt}h2{font-size:8.8pt}h1,h2,h3,p,ul,ol,figure,table,pre{margin-bottom:2pt}
.verdict{font-size:10.6pt;line-height:1.25;max-width:none}p,.warn,.dec{max-width:none}
.sub,figcaption,caption,small,table,.legend,.kind{font-size:7pt;line-height:1.3}
main{margin-top:4pt}section{display:block;padding:2.5pt 0 0;break-inside:avoid}
.two{display:grid;grid-template-columns:1fr 1fr;column-gap:16pt;border-bottom:1px solid var(--rule)}.two section{display:block}
.zoom,.js,details,.paperless,#ov,.quiet,#assumed,#said,#memory table{display:none!important}
.rest{display:grid;grid-template-columns:1fr 1fr;column-gap:16pt}.rest>*{min-width:0}.cont{grid-area:1/1/4/2}#rules,#rules>div{display:contents}#rules h2{grid-area:1/2;margin:3pt 0 0}.dec{grid-area:2/2}.scr,#again h2{display:none}.nb{white-space:normal}#again{grid-area:6/1/7/3}#again>div{display:flex;flex-wrap:wrap;gap:0 8pt;align-items:baseline}#again .sub{flex:1 1 60%}#again *{margin:0}header{position:relative}.kind{position:absolute;right:0;top:0}.rules{grid-area:4/1/5/3}#changes{grid-area:5/1/6/3}#rollback{grid-area:3/2}#rollback>div{display:flex;gap:8pt;align-items:center}#rollback .ga{flex:0 0 46%}.rest section{border:0;break-inside:auto}.rest tr,.rest li,.rest p{break-inside:avoid}.rest h2{break-after:avoid}
.sort thead button{border:0;padding:0;min-height:0}.sort button::after{content:none!important}
#timeline .tl{--h:min(4mm,calc(34mm/var(--p)))!important}#timeline .lab span{font-size:min(5.6pt,calc(34mm/var(--p)))}#timeline svg text{font-size:8px}#timeline .ax{height:12px}#timeline .ax text{transform:translateY(-4px)}
.legend{gap:0 8pt;font-size:6.2pt}.sw{zoom:.7}.legend small{display:none}
th,td,.n td,.n thead th:not(:first-child){padding-top:.4pt;padding-bottom:.4pt}.sort thead th{white-space:nowrap!important}#rollback p,#timeline p,.two p{font-size:7.2pt}figcaption{font-size:6.4pt;line-height:1.25;margin:0}.sub{font-size:6.1pt;max-width:none}
table,.rules code,.loc code,.sort button{font-size:6.2pt!important;line-height:1.12}.because{min-width:0}.loc{white-space:normal}.rules code{font-family:inherit}wbr{display:none}.rules th,.rules td{white-space:nowrap}.rules .because{white-space:normal}.rules .src{display:none}.rules .loc,.rules tbody th{width:auto}.takes{width:24%}.chg td,.chg th{padding-top:.3pt;padding-bottom:.3pt}.plan{gap:0 8pt;font-size:7.2pt;margin-bottom:2pt}.rules td,.rules th{padding-right:4pt}.dec{font-size:7pt;line-height:1.25;padding-left:10pt}.n tbody th{min-width:0}
.warn{font-size:6.7pt;line-height:1.22;columns:2;column-gap:16pt}.warn li{break-inside:avoid}.warn li{margin-bottom:1pt;padding-left:5pt}.sep{stroke-width:.2px}
.hd{font-size:6pt;line-height:12px}#ph{margin-top:-4px}
.two figure{zoom:.53}.two p{margin-bottom:0}.two .legend{margin-bottom:1pt}.two figcaption{font-size:10.5pt}.mem .lab{padding-top:32px}.mem .lab span{height:13px;line-height:13px;font-size:10px}
.ga{zoom:.62}pre{padding:1.5pt 4pt;white-space:nowrap;flex:none}#timeline svg text{font-size:7.5px}}
]==]

return screen .. narrow .. paper
