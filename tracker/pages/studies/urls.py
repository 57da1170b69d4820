"""URLs of comparisons and studies, in their formats."""

from django.urls import path, re_path

from tracker.pages.studies import views

urlpatterns = [
    path("compare/", views.compare, name="compare"),
    re_path(r"^compare\.(?P<form>txt|md|json)$", views.compare, name="compare-as"),
    path("studies/", views.studies, name="studies"),
    path("studies/keep/", views.save_study, name="keep-study"),
    path("studies/write/", views.edit, name="write-into-study"),
    path("study/<slug:slug>/", views.study, name="study"),
    re_path(r"^study/(?P<slug>[-\w]+)\.(?P<form>txt|md|json)$", views.as_form, name="study-as"),
]
